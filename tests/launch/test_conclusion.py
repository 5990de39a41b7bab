"""What a run leaves for its readers: the report with what belongs to it, and the manifest, written last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.sweeps import make_run

from pytest_tfgrpo import features
from pytest_tfgrpo.core.lessons import LeakedAnswer, Refusal
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.gate.baseline import from_run
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.named_gates import OpenGate
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.launch.conclusion import conclude, manifest, write
from pytest_tfgrpo.learning.library import screen
from pytest_tfgrpo.scoring.checks.registry import KINDS

RUN = make_run(train={"t": [1.0, 0.0]}, final={"a": [1.0, 0.0], "b": [1.0]}, warnings=("a warning",),
               status="incomplete", reason="the budget is spent")  # fmt: skip


def with_refusals(run: Run, epoch: int = 1) -> Run:
    phases = []
    for result in run.phases:
        if result.revision is not None:
            (operation, *_) = result.revision.applied
            refused = (
                Refusal(operation=operation, code="too_long", reason="of 900 characters"),
                Refusal(operation=operation, code="known", reason="said before"),
            )
            result = replace(result, revision=replace(result.revision, refused=refused, epoch=epoch))
        phases.append(result)
    return replace(run, phases=tuple(phases))


class HouseRule:
    name = "house rule"

    def judge(self, *_given: Any) -> RuleResult:
        return RuleResult(name="house rule", outcome="fail", message="of the house")


def test_a_gated_run_is_judged_by_rules_of_hooks_and_by_answers_in_its_lessons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Run] = []

    def leaked(run: Run, kinds: Any) -> Sequence[Any]:
        asked.append(run)
        assert kinds is KINDS
        return ()

    monkeypatch.setattr(screen, "leaked_answers", leaked)
    told: Any = {"sections": ("one",), "files": "out/1"}
    found = conclude(RUN, gated=True, kinds=KINDS, baseline=None, rules=(HouseRule(),), **told)
    assert found.verdict is not None
    assert "of the house" in {rule.message for rule in found.verdict.results}
    assert asked == [RUN]
    assert (found.report["sections"], found.report["files"]) == (["one"], "out/1")
    bare = conclude(make_run(final={"a": [1.0]}), gated=True, kinds=KINDS, baseline=None)
    assert (len(asked), bare.verdict is None) == (1, False)
    plain = conclude(RUN, gated=False, kinds=KINDS, baseline=None, sections=("two",), files="out/2")
    assert (plain.verdict, plain.report["gate"]) == (None, None)
    assert (plain.report["sections"], plain.report["files"]) == (["two"], "out/2")


def test_a_verdict_counts_leaked_answers_the_baseline_and_every_named_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leak = LeakedAnswer(experience_id="e1", scenario_id="a")
    monkeypatch.setattr(screen, "leaked_answers", lambda run, kinds: [leak])
    stored = from_run(make_run(final={"a": [1.0], "b": [1.0]}), "main")
    gates = [OpenGate(NamedGate(name=name, min_mean=0.5), None, False) for name in ("one", "two")]
    found = conclude(RUN, gated=True, kinds=KINDS, baseline=stored, gates=gates)
    assert found.verdict is not None
    outcomes = {rule.name: rule.outcome for rule in found.verdict.results}
    assert (outcomes["baseline"], outcomes["contamination"]) == ("fail", "fail")
    assert [gate.name for gate in found.verdict.gates] == ["one", "two"]
    without = conclude(RUN, gated=True, kinds=KINDS, baseline=None).verdict
    assert without is not None
    assert {rule.name: rule.outcome for rule in without.results}["baseline"] == "skipped"


def test_a_manifest_has_what_ran_with_what_and_how_it_ended() -> None:
    run = with_refusals(RUN, epoch=3)
    found = manifest(conclude(run, gated=False, kinds=KINDS, baseline=None), {"actor": "pytest.ini"})
    assert (found["status"], found["reason"]) == ("incomplete", "the budget is spent")
    assert (found["started_at"], found["finished_at"]) == (run.started_at, run.finished_at)
    assert (found["origins"], found["warnings"]) == ({"actor": "pytest.ini"}, ["a warning"])
    assert found["draws"]["epoch2-eval"] == {"n": 2, "scenarios": ["a", "b"]}
    assert found["seed"] == run.settings["seed"]
    refused = found["tfgrpo"]["refused"]
    assert refused == [
        {"epoch": 3, "code": "too_long", "reason": "of 900 characters"},
        {"epoch": 3, "code": "known", "reason": "said before"},
    ]
    assert [one["id"] for one in found["tfgrpo"]["experiences"]] == [e.id for e in run.library.experiences]


def test_the_manifest_is_written_after_all_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[str]] = []
    monkeypatch.setattr(
        features, "AFTER_RUN", (lambda folder, _: kept.append([path.name for path in folder.iterdir()]),) * 2
    )
    concluded = conclude(RUN, gated=False, kinds=KINDS, baseline=None)
    write(tmp_path, concluded, {})
    assert kept == [[], []], "features have their turn, first"
    written = {path.name: path for path in tmp_path.iterdir()}
    assert written.keys() == {"report.json", "report.html", "manifest.json"}
    assert json.loads(written["report.json"].read_text())["run_id"] == "run1"
    for path in tmp_path.iterdir():
        path.unlink()
    (tmp_path / "report.html").mkdir()
    with pytest.raises(Exception, match=r"report\.html"):
        write(tmp_path, concluded, {})
    assert not (tmp_path / "manifest.json").exists()


def test_a_manifest_has_every_part_under_its_name() -> None:
    run = with_refusals(RUN)
    concluded = conclude(run, gated=True, kinds=KINDS, baseline=None)
    found = manifest(concluded, {})
    assert [*found] == [
        *(
            "schema",
            "run_id",
            "task_id",
            "status",
            "reason",
            "started_at",
            "finished_at",
            "settings",
            "origins",
        ),
        *("stamps", "versions", "seed", "draws", "warnings", "tfgrpo", "gate"),
    ]
    assert (found["schema"], found["run_id"], found["task_id"]) == (
        "tfgrpo.manifest/1",
        run.run_id,
        run.task_id,
    )
    assert (found["settings"], found["stamps"], found["versions"]) == (run.settings, run.stamps, run.versions)
    assert found["gate"] == concluded.report["gate"] is not None
    assert [*found["tfgrpo"]] == ["group_size", "epochs", "experiences", "refused"]
    assert found["tfgrpo"]["group_size"] == run.settings["group_size"]
    assert found["tfgrpo"]["epochs"] == concluded.report["epochs"]
