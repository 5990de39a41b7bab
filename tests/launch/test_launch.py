"""A launch before and after its run: what it takes, which items its gates excuse, and what it came to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import make_scenario
from support.journals import write_run
from support.sweeps import make_run

from pytest_tfgrpo import features
from pytest_tfgrpo.core.errors import BaselineError, RecordingError, SettingError
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.settings import Settings, resolve
from pytest_tfgrpo.engine.preparation import prepare
from pytest_tfgrpo.engine.request import RunRequest
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.gate import verdict
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.named_gates import OpenGate
from pytest_tfgrpo.launch import conclusion
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
    (tmp_path / "gates.yaml").write_text("gates:\n  gain: {gain: true}\n")
    assert read_gates(settings, tmp_path, EVALS, partial=False) == []


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
    monkeypatch.setattr(launching, "compared_stamps", lambda job: {"eval": "s"})

    def why_unfair(baseline: str, **of_run: Any) -> str:
        assert of_run == {"temperature": 0.45, "stamps": {"eval": "s"}}
        return "" if baseline == "fair" else "stamps"

    monkeypatch.setattr(launching, "why_unfair", why_unfair)
    launch = launch_of(settings_of(temperature_eval="0.45", **flags), **fields)
    assert " ".join(sorted(launch.excused)) == excused


def test_a_launch_without_a_gate_looks_once_and_a_replay_misses_what_it_warns_of() -> None:
    plain = launch_of(settings_of())
    assert (plain.looks, plain.more_rollouts(cast(Any, None)), plain.watch, plain.missed) == ((), 0, None, [])
    assert launch_of(settings_of(), replay=of(warnings=["one reply is missing"])).missed == [
        "one reply is missing"
    ]


@pytest.mark.parametrize(
    ("folder", "later"),
    [(Path("run1"), "; to record the finished run, use: tfgrpo record add 'r 1.json'"), (None, "")],
)
def test_a_recording_that_fails_says_how_to_make_it_later(
    folder: Path | None, later: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, run: object, rest: list[object]) -> None:
        assert (path, rest) == (tmp_path / "r 1.json", ["judged"])
        raise RecordingError("no room")

    monkeypatch.setattr(writing, "record", fail)
    run = cast(Any, of(status="complete"))
    with pytest.raises(RecordingError) as raised:
        launch_of(settings_of(record="r 1.json"), tmp_path, folder=folder).record(run, cast(Any, ["judged"]))
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


def opened(
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Any,
    partial: str = "",
    gates: Any = (),
    baseline: str | None = "main",
    loaded: Any = None,
    **job: Any,
) -> tuple[Launch, Any]:
    """Return an opened launch, with the request that was prepared."""
    looks = {"a" * 64: ("v1", "v2")}
    stored = loaded or (lambda path: of(scenarios={"e0": 1, "gone": 1, "away": 1}, looks=looks, path=path))
    monkeypatch.setattr(launching, "load", stored)
    made: list[Any] = []
    value = of(job=of(**{"rewarders": (), "scenarios": (), "judge": None} | job))
    monkeypatch.setattr(prepare, "prepare", lambda request: made.append(request) or value)
    request = RunRequest(
        root=Path("root"),
        settings=settings_of(baseline=baseline) if baseline else settings_of(),
        scenarios=EVALS,
        phases=(),
        supplied=Supplied(kinds={}),
        environ={},
        gates=gates,
        partial=partial,
        elsewhere=elsewhere,
    )
    return launching.open_launch(request), made[0]


def test_scenarios_of_a_baseline_that_nobody_looked_for_make_a_run_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []

    def elsewhere(ids: Any) -> str:
        asked.append(ids)
        return "tests/other"

    launch, request = opened(monkeypatch, elsewhere)
    assert (asked, request.partial) == ([["gone", "away"]], "tests/other")
    assert request.looks == {"a" * 64: ("v1", "v2")}
    assert launch.baseline is not None
    assert (opened(monkeypatch, None)[1].partial, opened(monkeypatch, elsewhere, "-k e")[1].partial) == (
        "",
        "-k e",
    )
    one_each = {
        name: of(scenarios={name: 1, "e1": 1}, looks={"a" * 64: (name,)}) for name in ("main", "x", "y")
    }
    gates = tuple(named(name=name, baseline=name) for name in ("x", "y"))
    _, request = opened(monkeypatch, elsewhere, gates=gates, loaded=lambda path: one_each[path.stem])
    assert (asked.pop(), request.looks) == (["main", "x", "y"], {"a" * 64: ("main", "x", "y")})
    whole = of(scenarios={"e0": 1}, looks={})
    assert opened(monkeypatch, elsewhere, loaded=lambda path: whole)[1].partial == ""
    launch, request = opened(monkeypatch, elsewhere, baseline=None)
    assert (launch.baseline, request.partial, request.looks, len(asked)) == (None, "", {}, 1)


def named(**changes: Any) -> NamedGate:
    return NamedGate(**{"name": "own", "min_mean": 0.5} | changes)


def test_a_named_gate_has_the_baseline_of_its_own_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = (named(baseline="other"), named(baseline="none"), named())
    launch, _ = opened(monkeypatch, None, gates=gates)
    names = [None if one.baseline is None else cast(Any, one.baseline).path.stem for one in launch.gates]
    assert names == ["other", None, "main"]
    assert [one.gate for one in launch.gates] == list(gates)
    assert [one.live for one in launch.gates] == [False] * 3


def test_a_metric_of_any_gate_has_its_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = make_scenario("r", split="eval", rubric=(Criterion(text="kind"),))
    job: Any = {"rewarders": (of(name="style"), of(name="tone")), "scenarios": (scenario,), "judge": object()}
    gates = (named(), *(named(metric=metric) for metric in ("tone", "kind", "exact")))
    launch, _ = opened(monkeypatch, None, gates=gates, baseline=None, **job)
    assert [one.gate.metric for one in launch.gates] == [None, "tone", "judge.kind", "check.exact"]
    with pytest.raises(SettingError, match="nothing in this run reports the metric 'kind'"):
        opened(monkeypatch, None, gates=gates, baseline=None, **job | {"judge": None})


def test_a_baseline_of_a_named_gate_that_cannot_be_read_or_is_a_reference_is_named_with_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(path: Path) -> Any:
        if path.stem == "other":
            raise BaselineError("there is no baseline")
        return of(scenarios={}, looks={})

    with pytest.raises(SettingError, match=r"own.*baseline.*there is no baseline"):
        opened(monkeypatch, None, gates=(named(baseline="other"),), loaded=missing)
    with pytest.raises(SettingError, match=r"own.*baseline.*'no-lessons' is a library or holds"):
        opened(monkeypatch, None, gates=(named(baseline="no-lessons"),))
    launch, _ = opened(monkeypatch, None, gates=(named(),), baseline="no-lessons")
    assert launch.baseline is None
    assert [(one.baseline, one.live) for one in launch.gates] == [(None, True)]


def test_what_a_replay_and_traces_say_is_among_the_warnings_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(text: str | None) -> Any:
        return of(other_recording=lambda name, path: text and f"{text}: {name} {path}")

    replay = of(notes=["note"], warnings=["missed"], name="r", recording=of(path="p"))
    gates = (
        gate(baseline=differs("other")),
        gate(baseline=differs("own")),
        gate(baseline=differs(None)),
        gate(),
    )
    tracing = of(close=lambda: "2 spans were lost")
    concluded: list[Any] = []
    monkeypatch.setattr(launching, "split_lines", lambda scenarios: [f"split of {len(scenarios)}"])
    monkeypatch.setattr(conclusion, "conclude", lambda run, **given: concluded.append((run, given)) or "end")
    launch = launch_of(
        settings_of(learning=True),
        replay=replay,
        baseline=differs("own"),
        gates=gates,
        supplied=of(rules=("r",), tracing=tracing, kinds={}),
    )
    run = make_run(final={"a": [1]}, warnings=("early",))
    assert launch.conclude(run, warnings=["late"], sections=["section"], files="out/x") == "end"
    ((found, given),) = concluded
    assert found.warnings == (
        "early",
        "late",
        "2 spans were lost",
        "note",
        "own: r p",
        "other: r p",
        "missed",
    )
    assert given["sections"] == ["split of 1", "section"]
    assert (given["gated"], given["rules"], given["files"]) == (True, ("r",), "out/x")
    secret, taken_out = "password=hunter2hunter2", "password=[redacted:named]"
    bare = launch_of(settings_of(), supplied=of(rules=(), tracing=of(close=str), kinds={}))
    bare.conclude(run, warnings=[secret], sections=["one", secret])
    found, given = concluded.pop()
    assert (found.warnings, given["sections"]) == (("early", taken_out), ["one", taken_out])
    bare.conclude(run)
    found, given = concluded[1]
    assert (found.warnings, given["sections"], given["gated"]) == (("early",), [], False)


def test_looks_and_more_rollouts_are_those_of_the_baseline_and_of_every_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdict, "planned_looks", lambda job, *by: (job.settings["seed"], *by))
    monkeypatch.setattr(verdict, "more_rollouts", lambda run, *by: (run, *by))
    launch = launch_of(settings_of(seed="5", **MEAN), baseline="b", gates=("g1", "g2"))
    assert launch.looks == (5, "b", ("g1", "g2"))
    assert launch.more_rollouts(cast(Any, "run")) == cast(Any, ("run", "b", ("g1", "g2")))


def test_the_first_feature_that_opens_a_watch_has_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watching(name: str | None) -> Any:
        return lambda job, baseline, foreign: asked.append((baseline, foreign)) or name

    monkeypatch.setattr(features, "WATCH_SWEEP", (watching(None), watching("first"), watching("second")))
    launch = launch_of(settings_of(), baseline="b", supplied=of(rules=("r",), tracing=None))
    assert launch.watch == "first"
    assert asked == [("b", True)] * 2


def test_the_answers_on_file_of_a_run_that_did_not_end_are_recorded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[str]] = []
    monkeypatch.setattr(writing, "record", lambda path, run, rest: kept.append(rest))
    monkeypatch.setattr(writing, "describe", lambda file, found: [file])
    monkeypatch.setattr(launching, "read_log", lambda folder: of(rollouts={"id": f"of {folder}"}))
    for status, folder in (("killed", Path("run1")), ("complete", Path("run1")), ("killed", None)):
        launch = launch_of(settings_of(record="r.json"), tmp_path, folder=folder)
        assert launch.record(cast(Any, of(status=status)), cast(Any, ["judged"])) == ["r.json"]
    assert kept == [["judged", "of run1"], ["judged"], ["judged"]]


@pytest.mark.parametrize("folder", [Path("run1"), None])
def test_what_is_written_goes_to_the_folder_of_the_run_with_the_origins_of_its_settings(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(conclusion, "write", lambda *given: written.append(given))
    settings = settings_of(seed="5")
    launch_of(settings, folder=folder).write(cast(Any, "concluded"))
    assert written == ([] if folder is None else [(folder, "concluded", settings.origins)])
    assert "seed" in settings.origins
