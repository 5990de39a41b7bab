"""Looks at an eval split, as the committed files remember them."""

import json
import shutil
from pathlib import Path
from typing import Any

from support.project import Project


def looks(project: Project) -> int:
    report: Any = project.report()
    return int(report["gain"]["claim"]["looks"])


def variants(file: Path) -> list[str]:
    (found,) = json.loads(file.read_text())["looks"].values()
    return list(found)


def test_a_later_promotion_keeps_what_the_file_remembers(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(
        actor="python:agent:learner", group_size=2, library="library.json"
    )
    project.learn("--tfgrpo-library=none")
    assert project.cli("library", "promote", "latest") == 0
    before = variants(project.root / "library.json")
    shutil.rmtree(project.root / "out")
    project.learn("--tfgrpo-max-steps=4")
    assert project.cli("library", "promote", "latest") == 0
    after = variants(project.root / "library.json")
    assert set(before) < set(after)
    assert project.cli("library", "rebase") == 0
    assert variants(project.root / "library.json") == after


def test_a_baseline_that_is_saved_again_keeps_what_the_replaced_file_remembers(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(actor="python:agent:learner", group_size=2)
    project.learn("--tfgrpo-out=out")
    assert project.cli("baseline", "save", "main") == 0
    (file,) = project.root.glob("**/main.json")
    before = variants(file)
    shutil.rmtree(project.root / "out")
    project.learn("--tfgrpo-max-steps=4")
    assert project.cli("baseline", "save", "main") == 0
    assert set(before) < set(variants(file))


def test_repeating_one_build_is_no_further_look(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(actor="python:agent:learner", group_size=2)
    project.learn()
    result = project.learn()
    assert looks(project) == 1
    assert "reused" not in result.stdout.str()
