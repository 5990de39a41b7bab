"""Trying safety suites: what is called, and what its outcome says of a version."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.production.training.versions.safety_run import (
    SafetyFinding,
    SafetyPlaces,
    safe,
    safety_pages,
    safety_reasons,
    try_suites,
)
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.safety.generation import safety_scenarios
from pytest_tfgrpo.suite.scenario_files import load_scenarios


class Pytest:
    """Writes the report of a run, as pytest does, and keeps what it was called with."""

    def __init__(self, scores: Mapping[str, float | None] | None) -> None:
        self.scores = scores
        self.commands: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> str:
        self.commands.append(list(command))
        out = next(Path(one.partition("=")[2]) for one in command if one.startswith("--tfgrpo-out="))
        if self.scores is not None:
            report = {
                "status": "complete",
                "scenarios": [scenario(id_, mean) for id_, mean in self.scores.items()],
            }
            (out / "task" / "runs" / "r1").mkdir(parents=True)
            (out / "task" / "runs" / "r1" / "report.json").write_text(json.dumps(report))
        return "no such actor"


def scenario(id_: str, mean: float | None) -> dict[str, Any]:
    epoch = {"epoch": 1, "mode": "eval", "mean": mean, "errors": int(mean is None)}
    return {"id": id_, "epochs": [epoch]}


def tried(
    call: Callable[[Sequence[str]], str | None], tmp_path: Path, *suites: str, **options: Any
) -> tuple[SafetyFinding, ...]:
    return try_suites(
        suites,
        places=SafetyPlaces(
            project=tmp_path / "project",
            files=tmp_path / "project" / "safety",
            out=tmp_path / "out",
            library=tmp_path / "library.json",
        ),
        domains=("text",),
        seed=3,
        arguments=("--tfgrpo-actor=offline",),
        call=call,
        **{"judge": True, **options},
    )


def test_a_packaged_suite_is_written_and_tried_with_the_library(tmp_path: Path) -> None:
    call = Pytest({"a": 1.0, "b": 1.0})
    assert tried(call, tmp_path, "bias") == (SafetyFinding(suite="bias", scenarios=2),)
    file = tmp_path / "project" / "safety" / "safety-bias.scenario.json"
    assert len(json.loads(file.read_text())) == 12
    assert call.commands == [
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)),
            f"--tfgrpo-library={tmp_path / 'library.json'}",
            f"--tfgrpo-out={tmp_path / 'out' / 'bias'}",
            "--tfgrpo-actor=offline",
        ]
    ]


def test_all_packaged_suites_and_a_folder_of_the_project_are_tried_once(tmp_path: Path) -> None:
    call = Pytest({"a": 1.0})
    found = tried(call, tmp_path, "packaged", "bias", "checks/safe")
    assert [one.suite for one in found][-2:] == ["secret_leak", "checks/safe"]
    assert len(found) == len(call.commands) == 7
    assert str(tmp_path / "project" / "checks" / "safe") in call.commands[-1]
    assert safe(found) is True


def test_what_only_a_judge_decides_is_answered_for_a_person_without_one(tmp_path: Path) -> None:
    judged = [one["id"] for one in safety_scenarios("toxicity_test", domains=("text",))]
    call = Pytest(dict.fromkeys(judged, 0.0))
    found = tried(call, tmp_path, "toxicity_test", judge=False)
    said = "12 of 12 need a judge, and the run had none; read safety-toxicity_test.html, then"
    assert found[0].open == f"{said} tfgrpo loop versions verdict"
    assert found[0].failed == ()
    assert safe(found) is None
    (file,) = (tmp_path / "project" / "safety").iterdir()
    scenarios = load_scenarios(file, root=tmp_path, kinds=KINDS)
    assert {(one.truth, len(one.checks)) for one in scenarios} == {("checks", 1)}
    assert all(one.rubric for one in scenarios)
    page = next((tmp_path / "out" / "toxicity_test").rglob("report.json")).with_name("report.html")
    page.write_text("the answers")
    assert safety_pages(tmp_path / "out") == {"safety-toxicity_test.html": page}


def test_what_checks_decide_fails_without_a_judge_too(tmp_path: Path) -> None:
    scenarios = safety_scenarios("refusal_behavior", domains=("text",))
    call = Pytest({one["id"]: 1.0 if "rubric" in one else 0.0 for one in scenarios})
    (found,) = tried(call, tmp_path, "refusal_behavior", judge=False)
    assert len(found.failed) == 6
    assert found.open.startswith("6 of 12 need a judge")
    assert safe((found,)) is False


@pytest.mark.parametrize(
    ("scores", "verdict", "reasons"),
    [
        ({"a": 1.0, "b": 0.5}, False, ["safety suite bias: 1 of 2 failed: b"]),
        ({"a": 0.0, "b": None}, False, ["safety suite bias: 1 of 2 failed: a", "1 of 2 gave no result: b"]),
        ({"a": 1.0, "b": None}, None, ["safety suite bias: 1 of 2 gave no result: b"]),
        ({}, None, ["safety suite bias: it is empty"]),
        (None, None, ["safety suite bias: it did not run: no such actor"]),
    ],
)
def test_a_failure_and_what_is_open_are_told_apart(
    scores: Mapping[str, float | None] | None, verdict: bool | None, reasons: list[str], tmp_path: Path
) -> None:
    found = tried(Pytest(scores), tmp_path, "bias")
    assert safe(found) is verdict
    said = safety_reasons(found)
    assert [text.endswith(reason) for text, reason in zip(said, reasons, strict=True)] == [True] * len(said)


def test_what_was_tried_before_a_kill_is_not_tried_again(tmp_path: Path) -> None:
    call = Pytest({"a": 1.0})
    first = tried(call, tmp_path, "bias")
    again = Pytest({"a": 0.0})
    assert tried(again, tmp_path, "bias") == first
    assert again.commands == []
    report = next((tmp_path / "out").rglob("report.json"))
    report.write_text(report.read_text().replace("complete", "incomplete"))
    (found,) = tried(Pytest(None), tmp_path, "bias")
    assert found.open == "it did not run: no such actor"


@pytest.mark.parametrize(("deaths", "passed"), [(2, True), (3, False)])
def test_a_suite_whose_process_is_killed_is_tried_again_a_few_times(
    deaths: int, passed: bool, tmp_path: Path
) -> None:
    """As by a machine without memory; its run goes on where it was."""
    run = tmp_path / "out" / "bias" / "task" / "runs" / "r0"
    run.mkdir(parents=True)
    (run / "journal.jsonl").write_text("{}\n")
    whole, commands = Pytest({"a": 1.0}), list[list[str]]()

    def call(command: Sequence[str]) -> str | None:
        commands.append(list(command))
        return None if len(commands) <= deaths else whole(command)

    (found,) = tried(call, tmp_path, "bias")
    assert len(commands) == 3
    assert all("--tfgrpo-resume=r0" in command for command in commands)
    assert found.open == ("" if passed else "it did not run: a signal ended it, again and again")
    assert safe((found,)) is (True if passed else None)


def test_without_any_suite_nothing_is_known() -> None:
    assert safe(()) is None
