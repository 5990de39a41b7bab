"""An evidence epoch under pytest: no train scenario has an item in it, and nobody waits for one."""

from pathlib import Path

import pytest
from support.evidence import group, write
from support.project import Project

DEV = 20


@pytest.fixture
def suite(project: Project) -> Project:
    project.ini(actor="python:agent:learner", group_size=2, epochs=3, eval_rollouts=2, lesson_dropout=0)
    write(project.root / "evidence.jsonl", [group(n, 0.9, 0.1, 0.2, domain="text") for n in range(8)])
    return project.tasks(train=3, dev=DEV, eval=2)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_items_are_of_the_epochs_that_ask(suite: Project, workers: list[str]) -> None:
    if workers:
        suite.plugins("xdist")
    result = suite.learn("-v", "--tfgrpo-evidence=evidence.jsonl", *workers)
    text = result.stdout.str()
    items = [line for line in text.splitlines() if "epoch1-evidence" in line and "::" in line]
    assert items
    assert not [line for line in items if "train" in line]
    assert "train0[epoch2]" in text
    report = suite.report()
    assert [row["mode"] for row in report["epochs"]] == ["baseline", "evidence", "train", "eval"]
    assert report["status"] == "complete"
    assert report["evidence"]["attempts"] == 24


def test_a_dry_run_counts_no_call_of_it(suite: Project) -> None:
    result = suite.learn("--tfgrpo-evidence=evidence.jsonl", "--tfgrpo-dry-run")
    result.stdout.fnmatch_lines(["epoch1-evidence * - * 8 * 3 to 3 * 0"])
    assert suite.calls == []


def test_a_bad_file_is_a_usage_error(suite: Project) -> None:
    Path(suite.root / "evidence.jsonl").write_text("{}\n")
    result = suite.learn("--tfgrpo-evidence=evidence.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*evidence.jsonl:1: #/schema: * is not the schema 'tfgrpo.evidence/1'"])
    assert suite.calls == []
