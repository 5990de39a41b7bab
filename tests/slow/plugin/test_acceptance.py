"""The dev split as the user meets it: its items, what is skipped, and what is said where it is too small."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

DEV = 20


def with_dev(project: Project, dev: int = DEV, *, train: int = 2, sweep: int = 1) -> Project:
    """Write a suite with an explicit dev split, whose answer is 3."""
    return project.tasks(train=train, dev=dev, eval=sweep)


@pytest.fixture
def suite(project: Project) -> Project:
    project.ini(actor="python:agent:learner", group_size=4, epochs=3, eval_rollouts=2, lesson_dropout=0)
    return with_dev(project)


def test_the_dev_split_is_taken_from_many_train_scenarios_where_none_is_named(suite: Project) -> None:
    with_dev(suite, dev=0, train=140)
    suite.learn("--tfgrpo-sample-size", "2", "--tfgrpo-epochs", "2")
    report = suite.report()
    dev = {s["id"] for s in report["scenarios"] if s["split"] == "dev"}
    assert report["acceptance"]["scenarios"] == len(dev) >= DEV
    assert report["acceptance"]["epochs"][0]["lessons"]
    assert not any("kept without a test" in warning for warning in report["warnings"])


def test_other_eval_scenarios_lead_to_the_same_library_with_the_shipped_optimizer(suite: Project) -> None:
    """Their prompts, their answers, and how well the agent does on them have no part in what is learned."""

    def learned() -> tuple[Any, Any, Any]:
        suite.learn("-q", "--tfgrpo-contamination", "warn")
        report = suite.report()
        for lesson in (lesson for epoch in report["acceptance"]["epochs"] for lesson in epoch["lessons"]):
            del lesson["id"]  # it holds the run's
        return report["library"]["hash"], report["acceptance"], report["gain"]["difference"]

    with_dev(suite, dev=0, train=140)
    plain = learned()
    assert plain[1]["epochs"][0]["lessons"]
    assert suite.report()["library"]["lessons"]
    path = suite.root / "suite.scenario.json"
    rows = [row for row in json.loads(path.read_text()) if row["split"] != "eval"]
    others = [
        {
            "id": f"another{n}",
            "domain": "text",
            "split": "eval",
            "prompt": f"Use count_words or guess? How many has train letter {n}, words, a b c?",
            "checks": [{"kind": "exact", "value": "count_words" if n % 2 else "3"}],
        }
        for n in range(30)
    ]
    path.write_text(json.dumps([*others[:15], *rows, *others[15:]]))
    changed = learned()
    assert changed[:2] == plain[:2]
    assert changed[2] != plain[2]


def test_a_recording_answers_for_the_dev_split(suite: Project) -> None:
    suite.learn("--tfgrpo-record", "answers.jsonl")
    first = suite.report()
    asked = len(suite.calls)
    suite.learn("--tfgrpo-actor", "replay:answers.jsonl")
    again = suite.report()
    assert len(suite.calls) == asked
    for report in (first, again):
        for epoch in report["acceptance"]["epochs"]:
            for lesson in epoch["lessons"]:
                del lesson["id"]
    assert again["acceptance"]["epochs"] == first["acceptance"]["epochs"]
    assert again["library"]["hash"] == first["library"]["hash"]


def test_workers_show_the_same(suite: Project) -> None:
    suite.plugins("xdist.plugin")
    result = suite.learn("-n", "2", "-v")
    assert result.ret == 0
    assert "dev0[epoch1]" in result.stdout.str()
    assert re.search(r"\d+ skipped", result.stdout.str())
    assert suite.report()["acceptance"]["epochs"][0]["verdict"] == "accepted"


def test_an_interrupted_run_goes_on_in_the_dev_split(suite: Project) -> None:
    suite.pages().learn()
    whole, folder = suite.report(), suite.runs()[-1]
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"candidate"' in line[:200])
    (folder / "journal.jsonl").write_bytes(b"".join(lines[: at + 15]))
    asked = len(suite.calls)
    suite.learn("--tfgrpo-resume", folder.name)
    assert suite.report()["acceptance"] == whole["acceptance"]
    rollouts = [line for line in lines[: at + 15] if b'"rollout"' in line[:200]]
    assert len(suite.calls) == 2 * asked - len(rollouts)
    assert Path(folder / "report.html").exists()
