"""What pytest's thread knows of a run that goes on."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_scenario
from support.sweeps import make_result

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.plugin.progress.run_monitor import RunMonitor

PHASES = (
    Phase(epoch=1, mode="train", temperature=0.5, rollouts=4, scenarios=("a", "b"), dev=("d",)),
    Phase(epoch=0, mode="baseline", temperature=0.5, rollouts=2, scenarios=("e",), concurrent=True),
    Phase(epoch=2, mode="eval", temperature=0.5, rollouts=2, scenarios=("e",)),
)


class Thread:
    """The engine's thread, which only takes note of what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.told.append((name, *args))


@pytest.fixture
def monitor() -> Any:
    """Return the monitor of a run that has begun, without an engine."""
    made: Any = RunMonitor.__new__(RunMonitor)
    made.run = made.error = made._entered = None
    made._results, made._groups, made._refused, made._shared, made._rollouts = {}, {}, {}, set(), {}
    made._lost, made._closed, made._last, made.started = set(), set(), (0, {}), True
    made._phases = {phase.epoch: phase for phase in PHASES}
    made._dev = {phase.epoch: frozenset(phase.dev) for phase in PHASES}
    made._control, made.together, made._thread = 0, (made,), Thread()
    made.job = SimpleNamespace(run_id="run1", scenarios=())
    made._wait = lambda done: done()
    return made


def test_why_there_is_no_more_is_what_came_first(monitor: Any) -> None:
    assert monitor.why == "the run is not over"
    monitor._refused["r"] = "the budget is used up"
    assert monitor.why == "the budget is used up"
    monitor._results = {
        1: make_result({"a": [1.0]}),
        2: make_result({"a": [1.0]}, status="incomplete", reason="the provider is away"),
    }
    assert monitor.why == "the provider is away"
    monitor.run = SimpleNamespace(reason="", status="cancelled")
    assert monitor.why == "cancelled"
    monitor.run.reason = "interrupted\nhere"
    assert monitor.why.isprintable()
    assert monitor.why.startswith("interrupted")
    monitor.error = ValueError("disk " * 1000)
    assert monitor.why.startswith("ValueError: disk ")
    assert len(monitor.why) <= 1000


def test_of_a_large_file_an_epoch_has_what_it_drew_and_of_a_dev_scenario_nothing(monitor: Any) -> None:
    many = [make_scenario(name) for name in "bcda"]
    assert [scenario.id for scenario in monitor.drawn(1, many)] == ["b", "a"]
    assert monitor.drawn(1, many[1:2]) == many[1:2]
    assert monitor.drawn(1, many[2:3]) == []
    assert (monitor.group_size(1), monitor.group_size(2)) == (4, 2)


def revision(rollouts: int | None) -> Any:
    decided = None if rollouts is None else SimpleNamespace(rollouts=rollouts)
    return SimpleNamespace(acceptance=decided)


ERRORS = make_group([None], scenario_id="d", mode="dev", group_id="x1")
FIRST, LAST = (make_group([0.5], scenario_id="d", mode="dev", group_id=f"g{n}") for n in (1, 2))
OTHER = make_group([1.0], scenario_id="c", mode="dev", group_id="g3")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"dev": (FIRST, LAST, OTHER)}, (LAST, "")),
        ({"dev": (FIRST, ERRORS)}, (FIRST, "")),
        ({"dev": (ERRORS, OTHER)}, (ERRORS, "")),
        ({"dev": (OTHER,)}, (None, "")),
        ({"revision": revision(8)}, (None, "no lesson in question fits its prompt")),
        ({"revision": revision(0)}, (None, "no lesson was in question")),
        ({"revision": revision(None)}, (None, "no lesson was in question")),
    ],
)
def test_a_dev_scenario_has_its_last_group_scored_if_one_is(
    monitor: Any, fields: dict[str, Any], found: tuple[Any, str]
) -> None:
    assert monitor.dev_group(1, "d") == (None, "")
    monitor._results[1] = make_result({"a": [1.0]}, mode="train", **fields)
    assert monitor.dev_group(1, "d") == found


def test_a_group_is_known_once_it_is_scored_and_none_after_its_phase_without_it(monitor: Any) -> None:
    group = make_group([1.0], scenario_id="e")
    monitor._groups = {2: {"e": group}}
    assert monitor.group(2, "e") is group
    monitor._results[2] = make_result({"e": [1.0]}, settled=("f",))
    assert monitor.group(2, "f") is None
    assert [monitor.is_settled(2, name) for name in "ef"] == [False, True]
    assert monitor.is_settled(1, "f") is False


def test_answers_of_the_final_sweep_serve_the_control_alone(monitor: Any) -> None:
    monitor._shared.add("e")
    assert [monitor.is_shared(epoch, "e") for epoch in (0, 1, 2)] == [True, False, False]
    assert monitor.is_shared(0, "a") is False


def test_a_lost_rollout_is_asked_again_once(monitor: Any) -> None:
    monitor._lost.add("run1.e1.a.r0")
    assert [monitor.is_lost(1, "a", 0) for _ in range(2)] == [True, False]


def test_entering_an_epoch_opens_it_and_closes_each_before_it_once(monitor: Any) -> None:
    for epoch in (1, 1, 7, 0, 2, None):
        monitor.enter(epoch)
    assert monitor._thread.told == [
        ("open_phase", 1),
        ("open_phase", 0),
        ("close_judging", 1),
        ("open_phase", 2),
        ("close_judging", 0),
        ("open_phase", None),
        ("close_judging", 2),
    ]


def test_the_session_ends_when_the_engines_of_all_agents_failed(monitor: Any) -> None:
    other, session = SimpleNamespace(error=None), SimpleNamespace(shouldfail="")
    monitor.together, monitor.error = (monitor, other), ValueError("no")
    monitor.stop_when_broken(session)
    assert session.shouldfail == ""
    other.error = ValueError("no")
    monitor.stop_when_broken(session)
    assert session.shouldfail == "tfgrpo: the run failed: ValueError: no"
