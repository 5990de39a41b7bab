"""`tfgrpo learn demo`: a fix that a person approved, from the approval to the next prompt; beside it a cheat.

The steps are those of the source's scenario "Fixing a Bug": the work, the approval, the snapshot, the proof
by the command that was run, the pattern, its review, its use.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.repositories import git
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.shelf.pattern_file import read_pattern


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    into = tmp_path_factory.mktemp("demo") / "files"
    return into / "shop", tfgrpo("learn", "demo", "--into", str(into))


def test_a_fix_is_proven_by_the_command_of_its_history_and_a_cheat_is_not(demo: tuple[Path, str]) -> None:
    shop, _ = demo
    jobs = [json.loads(path.read_text()) for path in shop.glob("out/shop/learning/*/manifest.json")]
    by_status = {job["status"]: job for job in jobs}
    assert sorted(by_status) == ["validated", "validation_failed"]
    assert by_status["validation_failed"]["root_cause"] == "test_failure"
    assert "asserts nothing of what changed" in by_status["validation_failed"]["reason"]
    job = by_status["validated"]
    folder = shop / "out/shop/learning" / job["job_id"]
    provenance = json.loads((folder / "provenance" / f"{job['scenario']}.json").read_text())
    assert "history" in json.dumps(provenance["recipe"]["sources"])
    assert git(shop, "rev-parse", f"refs/learning/{job['job_id']}").strip() == job["snapshot"]["commit"]


def test_its_pattern_is_shown_to_help_reviewed_and_in_the_next_prompt_and_skill(
    demo: tuple[Path, str],
) -> None:
    shop, said = demo
    (active,) = (shop / ".agent/patterns/active").glob("*.md")
    pattern = read_pattern(active)
    assert pattern.trial is not None
    assert (pattern.trial.outcome, pattern.trial.families) == ("helps", 12)
    log = [json.loads(line) for line in (shop / ".agent/patterns/log.jsonl").read_text().splitlines()]
    assert [(entry["event"], entry["by"]) for entry in log] == [
        ("written", "tfgrpo"),
        ("tried", "tfgrpo"),
        ("promoted", "ann"),
    ]
    for place in (".agents", ".claude"):
        assert pattern.description in (shop / place / "skills" / pattern.name / "SKILL.md").read_text()
    assert said.rstrip().splitlines()[-2].strip().startswith("1 passed")


def test_the_work_itself_is_left_as_it_was(demo: tuple[Path, str]) -> None:
    shop, _ = demo
    changed = git(shop, "diff", "HEAD", "--name-only").splitlines()
    assert changed == ["shop/pages.py", "tests/test_pages.py"]
    others = git(shop, "ls-files", "--others", "--exclude-standard").splitlines()
    assert {name.partition("/")[0] for name in others} == {".agents", ".agent", ".claude"}
    assert git(shop, "stash", "list") == ""
