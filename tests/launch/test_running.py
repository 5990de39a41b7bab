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

    def __init__(self, work: Path, actor_answer: Any = three_or_not, **changes: Any) -> None:
        job = make_job(
            ScriptedActor(actor_answer), work, scenarios=suite(0, 2), group_size=2, epochs=0,
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


class Follower:
    """Notes what it is told, by agent, and when it is closed."""

    def __init__(self) -> None:
        self.opened: list[list[str]] = []
        self.taken: list[tuple[str, Any]] = []
        self.ticks = 0
        self.closed: list[int] = []

    def __call__(self, threads: Any, launches: Any) -> Follower:
        self.opened.append([*threads, *launches])
        return self

    def tick(self) -> None:
        self.ticks += 1

    def take(self, agent: str, record: Any) -> None:
        assert not self.closed
        self.taken.append((agent, record))

    def close(self) -> None:
        self.closed.append(len(self.taken))


def carried_out_beside(launches: Any, observers: Any, follow: Any, *, apart: bool) -> dict[str, RunResult]:
    async def run() -> dict[str, RunResult]:
        found = await running.arun_launches(launches, observers, follow)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "nobody ticks any more"
        return found

    if apart:
        return asyncio.run(run())
    return running.run_launches(launches, observers, follow)


@pytest.mark.parametrize("apart", [False, True])
def test_who_follows_runs_has_the_records_of_each_and_is_closed_once(tmp_path: Path, apart: bool) -> None:
    follower = Follower()
    launches = {name: Launch(tmp_path / name) for name in ("a", "b")}
    carried_out_beside(launches, (), follower, apart=apart)
    assert follower.opened == [["a", "b", "a", "b"]]
    for name in launches:
        records = [record for agent, record in follower.taken if agent == name]
        assert sum(isinstance(one, Rollout) for one in records) == 4
        assert isinstance(records[-1], Run)
    assert follower.closed == [len(follower.taken)]
    assert follower.ticks > 0


@pytest.mark.parametrize("apart", [False, True])
def test_a_run_is_watched_and_extended_as_its_launch_says(tmp_path: Path, apart: bool) -> None:
    asked: list[Any] = []

    class Watched(Launch):
        def more_rollouts(self, run: Run) -> int:
            asked.append(run.status)
            return 4 if len(asked) == 2 else 0

    launch: Any = Watched(tmp_path)
    launch.watch = lambda phase, *_: asked.append(phase.mode)
    seen: list[Any] = []
    carried_out(launch, seen.append, apart=apart)
    assert asked == ["eval", "complete", "complete"]
    assert sum(isinstance(one, Rollout) for one in seen) == 2 * 4


@pytest.mark.parametrize("apart", [False, True])
def test_an_interrupt_after_the_end_of_one_run_ends_the_others(tmp_path: Path, apart: bool) -> None:
    follower, ended = Follower(), list[str]()

    def interrupt(record: Any) -> None:
        if isinstance(record, Run):
            ended.append(record.status)
            raise KeyboardInterrupt

    async def never(_call: Any) -> str:
        await asyncio.sleep(60)
        return "3"

    launches: Any = {"a": Launch(tmp_path / "a"), "b": Launch(tmp_path / "b", actor_answer=never)}
    with pytest.raises(KeyboardInterrupt):
        carried_out_beside(launches, interrupt, follower, apart=apart)
    assert ended == ["complete", "cancelled"]
    assert not [agent for agent, record in follower.taken if agent == "b" and isinstance(record, Run)]
    assert [one.told[-1] for one in launches.values()] == [("record", "complete"), ("record", "cancelled")]


def test_files_are_named_from_the_root_and_every_problem_and_the_first_error_is_told(tmp_path: Path) -> None:
    launch: Any = Launch(tmp_path)
    launch.missed = ["no answer of s1", "no answer of s2"]
    launch.prepared.folder = tmp_path / "out" / "demo" / "runs" / "run1"
    result = run_launch(launch)
    assert result.problems == ("no answer of s1", "no answer of s2")
    assert (launch.told[0][-1], result.folder) == ("out/demo/runs/run1", launch.prepared.folder)

    class Full(Launch):
        def write(self, conclusion: Any) -> None:
            raise JournalError(f"{self.root.name} is full")

    launches: Any = {name: Full(tmp_path / name) for name in ("one", "two")}
    with pytest.raises(JournalError, match="one is full"):
        running.run_launches(launches)
