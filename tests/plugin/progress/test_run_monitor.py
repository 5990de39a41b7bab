"""What pytest's thread knows of a run that goes on."""

import queue
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.observers import EngineFailed, LostRollout
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


def test_the_session_ends_when_the_engines_of_all_agents_failed(monitor: Any) -> None:
    other, session = SimpleNamespace(error=None), SimpleNamespace(shouldfail="")
    monitor.together = (monitor, other)
    monitor.records.take(EngineFailed(ValueError("no")))
    monitor.stop_when_broken(session)
    assert session.shouldfail == ""
    other.error = ValueError("no")
    monitor.stop_when_broken(session)
    assert session.shouldfail == "tfgrpo: the run failed: ValueError: no"


def test_a_run_that_does_not_end_when_it_is_stopped_is_given_up_and_said(
    monitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_monitor, "LAST_RECORD_S", 0.01)
    monitor._queue, monitor._progress = queue.SimpleQueue(), Thread()
    monitor._end_clean_on_termination = lambda on: None
    monitor.stop()
    assert monitor._thread.told == [("cancel",)]
    assert monitor.records.ended
    assert str(monitor.records.error) == "the run did not end within 0.01 s"
