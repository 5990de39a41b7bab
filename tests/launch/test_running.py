"""A launch carried out: what its result says, and how it ends when an observer or the engine breaks it."""

from __future__ import annotations

import asyncio
import queue
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ScriptedActor, make_job, suite, three_or_not

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.engine.observers import EngineFailed
from pytest_tfgrpo.launch import running
from pytest_tfgrpo.launch.result import RunResult
from pytest_tfgrpo.launch.running import arun_launch, run_launch


def verdict(*, failed: bool, named: tuple[bool, ...] = ()) -> Any:
    return SimpleNamespace(failed=failed, gates=[SimpleNamespace(failed=one) for one in named])


@pytest.mark.parametrize(
    ("status", "problems", "found", "passed"),
    [
        ("complete", (), None, True),
        ("complete", (), verdict(failed=False), True),
        ("complete", (), verdict(failed=False, named=(False, False)), True),
        ("complete", (), verdict(failed=False, named=(False, True)), False),
        ("complete", (), verdict(failed=True, named=(False,)), False),
        ("complete", ("a miss",), None, False),
        ("incomplete", (), verdict(failed=False), False),
    ],
)
def test_a_run_passes_when_it_is_complete_and_nothing_fails_it(
    status: str, problems: tuple[str, ...], found: Any, passed: bool
) -> None:
    run: Any = SimpleNamespace(status=status)
    report: Any = {}
    assert RunResult(run=run, verdict=found, report=report, folder=None, problems=problems).passed is passed


class Launch:
    """A launch of a small job, which keeps what it is told at its end."""

    def __init__(self, work: Path, **changes: Any) -> None:
        job = make_job(
            ScriptedActor(three_or_not), work, scenarios=suite(0, 2), group_size=2, epochs=0,
            baseline_sweep="off", **changes,
        )  # fmt: skip
        self.prepared = SimpleNamespace(job=job, folder=None)
        self.watch, self.root, self.missed = None, work, ["no answer of s1"]
        self.told: list[tuple[Any, ...]] = []

    def more_rollouts(self, _run: Run) -> int:
        return 0

    def conclude(self, run: Run, *, warnings: tuple[str, ...], files: str) -> Any:
        self.told.append(("conclude", run.status, warnings, files))
        return SimpleNamespace(run=run, verdict=None, report={"status": run.status})

    def write(self, conclusion: Any) -> None:
        self.told.append(("write", conclusion.run.status))

    def record(self, run: Run) -> None:
        self.told.append(("record", run.status))


def carried_out(launch: Any, observers: Any, *, apart: bool) -> RunResult:
    return asyncio.run(arun_launch(launch, observers)) if apart else run_launch(launch, observers)


@pytest.mark.parametrize("apart", [False, True])
def test_every_record_comes_on_the_callers_thread_and_the_result_at_the_end(
    tmp_path: Path, apart: bool
) -> None:
    seen: list[Any] = []

    def broken(_record: Any) -> None:
        raise ValueError("full")

    def observe(record: Any) -> None:
        assert threading.current_thread() is threading.main_thread()
        seen.append(record)

    launch = Launch(tmp_path)
    result = carried_out(launch, [broken, observe], apart=apart)
    assert result.problems == ("no answer of s1",)
    assert result.report == {"status": "complete"}
    assert sum(isinstance(one, Rollout) for one in seen) == 4
    assert [type(one) for one in seen].count(Run) == 1
    assert isinstance(seen[-1], Run)
    ((_, status, (warning,), files), *rest) = launch.told
    assert (status, files) == ("complete", "")
    assert warning.endswith("broken broke: ValueError: full")
    assert rest == [("write", "complete"), ("record", "complete")]


@pytest.mark.parametrize("apart", [False, True])
def test_an_observer_that_interrupts_ends_the_run_which_is_written_all_the_same(
    tmp_path: Path, apart: bool
) -> None:
    seen: list[Any] = []

    def interrupt(record: Any) -> None:
        seen.append(record)
        if isinstance(record, Rollout):
            raise KeyboardInterrupt

    launch = Launch(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        carried_out(launch, interrupt, apart=apart)
    assert [name for name, *_ in launch.told] == ["conclude", "write", "record"]
    assert isinstance(seen[-1], Run)


@pytest.mark.parametrize("apart", [False, True])
def test_what_breaks_the_engine_is_raised_and_nothing_is_written(tmp_path: Path, apart: bool) -> None:
    seen: list[Any] = []
    launch = Launch(tmp_path)

    class Broken:
        name, identity, paid = "broken", {}, False

        def bound(self, _count: int) -> None:
            raise LookupError("no such actor")

        async def aclose(self) -> None: ...

    job = launch.prepared.job
    launch.prepared.job = type(job)(
        **{f: getattr(job, f) for f in job.__dataclass_fields__} | {"actor": Broken()}
    )
    with pytest.raises(LookupError, match="no such actor"):
        carried_out(launch, seen.append, apart=apart)
    assert launch.told == []
    assert not any(isinstance(one, EngineFailed) for one in seen)


class Side:
    """Runs that take records until one is the last."""

    follower, ended = None, False

    def __init__(self) -> None:
        self.told: list[Any] = []

    def hand_on(self, name: str, record: Any) -> None:
        self.told.append((name, record))
        self.ended = isinstance(record, EngineFailed)


def test_a_run_that_does_not_end_in_time_is_an_error() -> None:
    side: Any = Side()
    with pytest.raises(TimeoutError, match=r"the run did not end within 0\.001 s"):
        running._take_all(side, queue.SimpleQueue(), timeout_s=0.001)


def test_records_that_gathered_are_handed_on_in_order_up_to_the_last() -> None:
    records = queue.SimpleQueue()
    last = EngineFailed(ValueError("x"))
    for record in ("a", "b", last, "late"):
        records.put(("", record))
    side: Any = Side()
    running._take_all(side, records)
    assert ([record for _, record in side.told], records.qsize()) == (["a", "b", last], 1)


@pytest.mark.parametrize("apart", [False, True])
def test_a_run_whose_files_cannot_be_written_keeps_no_other_from_being_written(
    tmp_path: Path, apart: bool
) -> None:
    class Full(Launch):
        def write(self, conclusion: Any) -> None:
            raise JournalError("the disk is full")

    launches: Any = {"a": Full(tmp_path / "a"), "b": Launch(tmp_path / "b")}
    seen: list[Any] = []
    arun, run = running.arun_launches, running.run_launches
    with pytest.raises(JournalError, match="the disk is full"):
        asyncio.run(arun(launches, seen.append)) if apart else run(launches, seen.append)
    assert [name for name, *_ in launches["b"].told] == ["conclude", "write", "record"]
    assert [type(one) for one in seen].count(Run) == 2


@pytest.mark.parametrize("apart", [False, True])
def test_an_engine_that_breaks_keeps_no_other_run_from_being_written(tmp_path: Path, apart: bool) -> None:
    broken, sound = Launch(tmp_path / "a"), Launch(tmp_path / "b")
    broken.prepared.job = SimpleNamespace(
        settings={}, actor=SimpleNamespace(), closing=()
    )  # no engine runs this
    arun, run = running.arun_launches, running.run_launches
    launches: Any = {"a": broken, "b": sound}
    with pytest.raises(AttributeError):
        asyncio.run(arun(launches)) if apart else run(launches)
    assert (broken.told, [name for name, *_ in sound.told]) == ([], ["conclude", "write", "record"])
