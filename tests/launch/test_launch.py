"""A launch before and after its run: what it takes, which items its gates excuse, and what it came to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import make_scenario
from support.journals import write_run

from pytest_tfgrpo.core.errors import RecordingError, SettingError
from pytest_tfgrpo.core.settings import Settings, resolve
from pytest_tfgrpo.gate.named_gates import OpenGate
from pytest_tfgrpo.launch import launch as launching
from pytest_tfgrpo.launch.choice import limited, phases_of, planned, select
from pytest_tfgrpo.launch.launch import Launch, is_gated, read_gates
from pytest_tfgrpo.launch.result import RunResult
from pytest_tfgrpo.recording import writing

EVALS = [make_scenario(f"e{n}", split="eval", stamp=f"{n:064x}") for n in range(6)]
TRAINS = [make_scenario(f"t{n}", split="train") for n in range(3)]


def settings_of(learning: bool = False, **flags: Any) -> Settings:
    learning = bool(flags.pop("learning", learning))
    return resolve({"actor": "python:m:a"} | flags, {}, {}, learning_flag=learning)


def of(**values: Any) -> Any:
    return SimpleNamespace(**values)


def modes(settings: Settings, root: Path, scenarios: list[Any]) -> list[tuple[str, int]]:
    return [(phase.label, len(phase.scenarios)) for phase in planned(scenarios, settings, root)]


def test_the_baseline_sweep_goes_where_nothing_trains_and_nothing_else_is_asked(tmp_path: Path) -> None:
    settings = settings_of(True, epochs="2", acceptance="off")
    assert {"baseline"} < {label for label, _ in modes(settings, tmp_path, [*TRAINS, *EVALS])}
    assert [label for label, _ in modes(settings, tmp_path, EVALS)] == ["epoch2-eval"]
    asked = settings_of(True, epochs="2", acceptance="off", baseline="no-lessons")
    assert "baseline" in {label for label, _ in modes(asked, tmp_path, EVALS)}


@pytest.mark.parametrize(("baseline", "sweeps"), [(None, 1), ("main", 1), ("no-lessons", 2)])
def test_a_plain_run_asks_its_reference_in_a_sweep_of_its_own(
    baseline: str | None, sweeps: int, tmp_path: Path
) -> None:
    assert len(phases_of(settings_of(baseline=baseline), tmp_path)) == sweeps


def test_without_learning_only_eval_scenarios_are_taken(tmp_path: Path) -> None:
    every = [*TRAINS, *EVALS]
    assert select(every, settings_of(), tmp_path) == EVALS
    assert select(every, settings_of(True, acceptance="off"), tmp_path) == every


def test_a_resumed_run_keeps_its_dev_split(tmp_path: Path) -> None:
    settings = settings_of(True, out="out", task_id="demo")
    write_run(
        tmp_path / "out" / "demo" / "runs" / "run1",
        [],
        [make_scenario("t1", split="dev"), *EVALS],
        status=None,
    )
    for resume, dev in ((None, []), ("run1", ["t1"]), ("latest", ["t1"])):
        taken = select([*TRAINS, *EVALS], settings, tmp_path, resume)
        assert [s.id for s in taken if s.split == "dev"] == dev


def test_a_limit_takes_eval_scenarios_only_and_a_larger_one_keeps_those_of_a_smaller() -> None:
    every = [*EVALS, *TRAINS]
    for flags in ({}, {"limit": "6"}, {"limit": "7"}):
        assert limited(every, settings_of(**flags)) == (every, "")
    smaller, said = limited(every, settings_of(limit="2"))
    assert said == "tfgrpo_limit takes 2 of 6 eval scenarios"
    assert [s for s in smaller if s.split == "train"] == TRAINS
    assert len(smaller) == 2 + 3
    larger, _ = limited(every, settings_of(limit="4"))
    assert {s.id for s in smaller} < {s.id for s in larger}
    drawn = {
        frozenset(s.id for s in limited(every, settings_of(limit="2", seed=str(n)))[0]) for n in range(9)
    }
    assert len(drawn) > 1


def test_a_plain_run_is_gated_once_a_rule_is_set() -> None:
    assert is_gated(settings_of(True))
    assert not is_gated(settings_of())
    assert is_gated(settings_of(gate_min_mean="0.5"))


def test_gates_without_a_rule_for_this_run_are_left_out_and_empty_selections_refused(tmp_path: Path) -> None:
    settings = settings_of(gates="gates.yaml")
    assert read_gates(settings_of(), tmp_path, EVALS, partial=False) == []
    (tmp_path / "gates.yaml").write_text(
        "gates:\n  mean: {domains: [text], min_mean: .5}\n  gain: {gain: true}\n"
    )
    assert [gate.name for gate in read_gates(settings, tmp_path, EVALS, partial=False)] == ["mean"]
    learns = settings_of(True, gates="gates.yaml")
    assert [gate.name for gate in read_gates(learns, tmp_path, EVALS, partial=False)] == ["mean", "gain"]
    with pytest.raises(SettingError, match="text"):
        read_gates(settings, tmp_path, [], partial=False)
    assert len(read_gates(settings, tmp_path, [], partial=True)) == 1
    (tmp_path / "gates.yaml").write_text("gates:\n  mean: {domains: [text]}\n")
    with pytest.raises(SettingError, match="nothing to check"):
        read_gates(settings, tmp_path, EVALS, partial=True)


def launch_of(settings: Settings, root: Path = Path(), **fields: Any) -> Launch:
    own = make_scenario("own", split="eval", min_score=0.5)
    job = of(partial_selection=fields.pop("partial", ""), reference=fields.pop("reference", None))
    job.settings, job.scenarios = settings.values, (EVALS[0], EVALS[1], own)
    values: dict[str, Any] = {"baseline": None, "gates": (), "supplied": of(rules=(), tracing=None)}
    prepared = of(job=job, replay=fields.pop("replay", None), folder=fields.pop("folder", None))
    return Launch(root=root, settings=settings, prepared=cast(Any, prepared), **values | fields)


def gate(**changes: Any) -> OpenGate:
    fields = {"severity": "fail", "metric": None, "min_mean": 0.5} | changes
    live, baseline = fields.pop("live", False), fields.pop("baseline", None)
    return OpenGate(cast(Any, of(**fields, selects=lambda s: s.id == "e1")), baseline, live)


MEAN = {"gate_min_mean": "0.5"}
COST = {"gate_max_cost_per_success_usd": "1"}


@pytest.mark.parametrize(
    ("flags", "fields", "excused"),
    [
        (MEAN, {}, "e0 e1"),
        (MEAN, {"partial": "-k e"}, ""),
        (MEAN | {"learning": True}, {}, ""),
        ({}, {"gates": (gate(),)}, ""),
        (COST, {}, ""),
        (COST, {"reference": object()}, "e0 e1"),
        (COST, {"gates": (gate(),)}, "e1"),
        (COST, {"gates": (gate(severity="warn"),)}, ""),
        (COST, {"gates": (gate(metric="tokens"),)}, ""),
        (COST, {"gates": (gate(min_mean=None),)}, ""),
        (COST, {"gates": (gate(min_mean=None, live=True),)}, "e1"),
        (COST, {"gates": (gate(min_mean=None, baseline="fair"),)}, "e1"),
        (COST, {"gates": (gate(min_mean=None, baseline="unfair"),)}, ""),
        (COST, {"baseline": "fair"}, "e0 e1"),
        (COST, {"baseline": "unfair"}, ""),
    ],
)
def test_items_are_excused_where_a_gate_that_can_fail_judges_their_mean(
    flags: dict[str, Any], fields: dict[str, Any], excused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "compared_stamps", lambda job: {})
    monkeypatch.setattr(launching, "why_unfair", lambda baseline, **_: "" if baseline == "fair" else "stamps")
    assert " ".join(sorted(launch_of(settings_of(**flags), **fields).excused)) == excused


def test_a_launch_without_a_gate_looks_once_and_a_replay_misses_what_it_warns_of() -> None:
    plain = launch_of(settings_of())
    assert (plain.looks, plain.more_rollouts(cast(Any, None)), plain.watch, plain.missed) == ((), 0, None, [])
    assert launch_of(settings_of(), replay=of(warnings=["one reply is missing"])).missed == [
        "one reply is missing"
    ]


@pytest.mark.parametrize(
    ("folder", "later"),
    [(Path("run1"), "; to record the finished run, use: tfgrpo record add r.json"), (None, "")],
)
def test_a_recording_that_fails_says_how_to_make_it_later(
    folder: Path | None, later: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, run: object, rest: list[object]) -> None:
        assert (path, rest) == (tmp_path / "r.json", ["judged"])
        raise RecordingError("no room")

    monkeypatch.setattr(writing, "record", fail)
    run = cast(Any, of(status="complete"))
    with pytest.raises(RecordingError) as raised:
        launch_of(settings_of(record="r.json"), tmp_path, folder=folder).record(run, cast(Any, ["judged"]))
    assert str(raised.value) == f"no room{later}"
    assert launch_of(settings_of(), tmp_path).record(run) == []


@pytest.mark.parametrize(
    ("status", "problems", "verdict", "passed"),
    [
        ("complete", (), None, True),
        ("aborted", (), None, False),
        ("complete", ("one reply is missing",), None, False),
        ("complete", (), of(failed=False, gates=()), True),
        ("complete", (), of(failed=True, gates=()), False),
        ("complete", (), of(failed=False, gates=(of(failed=False), of(failed=True))), False),
        ("aborted", (), of(failed=False, gates=()), False),
    ],
)
def test_a_run_passed_when_it_is_complete_without_problems_and_no_gate_fails(
    status: str, problems: tuple[str, ...], verdict: Any, passed: bool
) -> None:
    run = cast(Any, of(status=status))
    assert RunResult(run=run, verdict=verdict, report={}, folder=None, problems=problems).passed is passed
