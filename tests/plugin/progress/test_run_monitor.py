"""What pytest's thread knows of a run that goes on."""

import queue
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_rollout
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.observers import EngineFailed, LostRollout, Notice
from pytest_tfgrpo.plugin.progress import run_monitor
from pytest_tfgrpo.plugin.progress.run_monitor import RunMonitor
from pytest_tfgrpo.plugin.progress.run_records import RunRecords

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
    job: Any = SimpleNamespace(run_id="run1", phases=PHASES, scenarios=())
    made.launch = SimpleNamespace(prepared=SimpleNamespace(job=job))
    made.records, made._entered, made._closed, made.started = RunRecords(job), None, set(), True
    made.together, made._thread = (made,), Thread()
    made._wait = lambda done: done()
    return made


def test_a_lost_rollout_is_asked_again_once(monitor: Any) -> None:
    monitor.records.take(LostRollout(rollout_id="run1.e1.a.r0"))
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


class Hooks:
    """Notes which observers were called with what; those of `broken` names raise."""

    def __init__(self, broken: tuple[str, ...] = ()) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._broken = broken

    def __getattr__(self, name: str) -> Any:
        def observe(**given: Any) -> None:
            self.told.append((name, given))
            if name in self._broken:
                raise ValueError("boom")

        return observe


def observed(monitor: Any, *broken: str) -> Hooks:
    hooks = Hooks(broken)
    monitor._config, monitor.warnings = SimpleNamespace(hook=hooks), []
    monitor._progress = SimpleNamespace(**{name: lambda _: None for name in ("notice", "phase")})
    monitor.records = SimpleNamespace(take=lambda record: hooks.told.append(("taken", {"record": record})))
    return hooks


RUN = make_run(final={"e": [1]})


@pytest.mark.parametrize(
    ("record", "hook", "name"),
    [
        (make_rollout(), "pytest_tfgrpo_rollout", "rollout"),
        (RUN.phases[0], "pytest_tfgrpo_epoch", "result"),
        (make_experience(), "pytest_tfgrpo_experience", "experience"),
        (RUN, "pytest_tfgrpo_run", "run"),
        (LostRollout(rollout_id="run1.e1.a.r0"), None, ""),
        (RUN.phases[0].groups[0], None, ""),
    ],
)
def test_observers_hear_of_each_record_after_it_is_known(
    monitor: Any, record: Any, hook: str | None, name: str
) -> None:
    hooks = observed(monitor)
    monitor._take(record)
    expected: list[Any] = [("taken", {"record": record})]
    if hook is not None:
        expected.append((hook, {"config": monitor._config, name: record}))
    assert hooks.told == expected


def test_an_observer_that_breaks_is_a_warning_once(monitor: Any) -> None:
    hooks = observed(monitor, "pytest_tfgrpo_rollout")
    for _ in range(2):
        monitor._take(make_rollout())
    monitor._take(make_experience())
    assert monitor.warnings == ["hook pytest_tfgrpo_rollout raised ValueError: boom"]
    assert [name for name, _ in hooks.told].count("pytest_tfgrpo_experience") == 1


def test_a_notice_is_shown_and_no_record(monitor: Any) -> None:
    hooks, shown = observed(monitor), []
    monitor._progress.notice = shown.append
    monitor._take(Notice(text="paused"))
    assert (shown, hooks.told) == (["paused"], [])


@pytest.mark.parametrize("errors", [[None], ["x"], ["x", None], [None, "x"], ["x", "y"]])
def test_the_session_ends_once_all_its_runs_are_broken(monitor: Any, errors: list[str | None]) -> None:
    monitor.together = tuple(SimpleNamespace(error=error) for error in errors)
    monitor.records.take(EngineFailed(OSError("disk")))
    session: Any = SimpleNamespace(shouldfail=False)
    monitor.stop_when_broken(session)
    assert bool(session.shouldfail) is all(errors)
    if all(errors):
        assert session.shouldfail == "tfgrpo: the run failed: OSError: disk"


def test_a_run_that_does_not_end_when_it_is_stopped_is_given_up_and_said(
    monitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_monitor, "LAST_RECORD_S", 0.01)
    monitor._queue, monitor._progress = queue.SimpleQueue(), Thread()
    monitor._end_clean_on_termination = lambda on: None
    monitor.stop("enough")
    assert monitor._thread.told == [("cancel", "enough")]
    assert monitor.records.ended
    assert str(monitor.records.error) == "the run did not end within 0.01 s"


@pytest.mark.parametrize(("scenarios", "loads"), [((), False), (("a",), False), (("a", "b"), True)])
def test_a_run_starts_with_its_first_item_and_loads_ahead_where_there_is_time(
    monitor: Any, scenarios: Any, loads: bool
) -> None:
    told: list[Any] = []
    other = SimpleNamespace(start=lambda: told.append("other starts"), reach=lambda n: told.append(n))
    monitor.launch.prepared.job.scenarios = scenarios
    monitor.started = False
    monitor.together = (other, SimpleNamespace(start=lambda: setattr(monitor, "started", True), reach=print))
    monitor._load_ahead = lambda: told.append("loads")
    monitor.enter(1)
    monitor.enter(2)
    assert told == ["other starts", 1, *["loads"] * loads, 2]
