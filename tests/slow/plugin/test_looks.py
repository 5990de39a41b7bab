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


def test_a_fresh_checkout_does_not_forget_them(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(
        actor="python:agent:learner", group_size=2, library="library.json"
    )
    project.learn("--tfgrpo-library=none")
    project.learn("--tfgrpo-library=none", "--tfgrpo-max-steps=3")
    assert looks(project) == 2
    assert project.cli("library", "promote", "latest") == 0
    assert len(variants(project.root / "library.json")) == 2
    assert project.cli("baseline", "save", "main") == 0
    assert len(variants(project.root / "baselines/main.json")) == 2
    shutil.rmtree(project.root / "out")
    result = project.learn("--tfgrpo-max-steps=4")
    assert looks(project) == 2  # its library did not change, so it is measured against itself
    assert "No new lessons, so the agent is as before" in " ".join(result.stdout.str().split())
    shutil.rmtree(project.root / "out")
    project.learn("--tfgrpo-max-steps=4", "--tfgrpo-library=none", "--tfgrpo-baseline=main")
    assert looks(project) == 3
