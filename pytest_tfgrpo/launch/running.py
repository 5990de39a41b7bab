"""Launches carried out: engines on a thread of their own, observers on the caller's, results at the end."""

from __future__ import annotations

import asyncio
import os
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.python.collector import collecting_seldom
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.engine.observers import EngineFailed, Observer, Observers, Record
from pytest_tfgrpo.launch.engine_thread import JOIN_S, EngineThread, LoopThread
from pytest_tfgrpo.launch.exit_guard import guard_exits
from pytest_tfgrpo.launch.launch import Launch
from pytest_tfgrpo.launch.result import RunResult

GATHER_S = 0.005
"""How long records gather before they are handed on: to wake a thread for each one costs more."""
TICK_S = 0.2
"""How often somebody who follows the runs can show how far they are."""
ALONE = ""
"""Name of a run that is the only one."""


class Follower(Protocol):
    """Shows how far runs are; called on the caller's thread, and raises nothing."""

    def tick(self) -> None:
        """Show it, when it is time to."""
        ...

    def take(self, agent: str, record: Record) -> None:
        """Take a record of an agent's run."""
        ...

    def close(self) -> None:
        """Take away what is shown."""
        ...


Follow: TypeAlias = Callable[[Mapping[str, EngineThread], Mapping[str, Launch]], Follower]
"""Opens a follower of runs that are about to start."""
Launches: TypeAlias = Mapping[str, Launch]
"""Launches by agent; of a single one by the empty name."""


def run_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a single launch; see `run_launches`."""
    return run_launches({ALONE: launch}, observers)[ALONE]


async def arun_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a single launch; see `arun_launches`."""
    return (await arun_launches({ALONE: launch}, observers))[ALONE]


def run_launches(
    launches: Launches, observers: Observer | Sequence[Observer] = (), follow: Follow | None = None
) -> dict[str, RunResult]:
    """Carry out launches side by side and return their results; observers are called on this thread.

    Ctrl-C cancels the runs, waits until they are flushed and reported, and raises KeyboardInterrupt again.
    Raises TfgrpoError when files cannot be written.
    """
    with guard_exits(), collecting_seldom():
        records: queue.SimpleQueue[_Sent] = queue.SimpleQueue()
        side = _SideBySide(launches, observers, follow, lambda name, record: records.put((name, record)))
        side.start()
        try:
            _take_all(side, records)
        except BaseException:
            side.cancel()
            _take_all(side, records, timeout_s=JOIN_S)
            side.end()
            raise
        return side.end()


async def arun_launches(
    launches: Launches, observers: Observer | Sequence[Observer] = (), follow: Follow | None = None
) -> dict[str, RunResult]:
    """Carry out launches side by side and return their results; observers are called on this event loop.

    Cancelling it cancels the runs, waits until they are flushed and reported, and raises again. Raises
    TfgrpoError when files cannot be written.
    """
    with guard_exits(), collecting_seldom():
        return await _arun(launches, observers, follow)


async def _arun(
    launches: Launches, observers: Observer | Sequence[Observer], follow: Follow | None
) -> dict[str, RunResult]:
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[_Sent] = asyncio.Queue()

    def deliver(name: str, record: Record | EngineFailed) -> None:
        loop.call_soon_threadsafe(records.put_nowait, (name, record))

    side = _SideBySide(launches, observers, follow, deliver)
    side.start()
    ticking = None if side.follower is None else loop.create_task(_tick(side.follower))

    async def finish() -> None:
        await asyncio.wait_for(_await_all(side, records), JOIN_S)
        await asyncio.to_thread(side.end)

    try:
        await _await_all(side, records)
    except BaseException:
        side.cancel()
        finishing = loop.create_task(finish())
        while not finishing.done():
            with suppress(asyncio.CancelledError):  # being cancelled again changes nothing
                await asyncio.shield(finishing)
        raise
    finally:
        if ticking is not None:
            ticking.cancel()
    return await asyncio.to_thread(side.end)


async def _tick(follower: Follower) -> None:
    while True:
        follower.tick()
        await asyncio.sleep(TICK_S)


_Sent: TypeAlias = tuple[str, Record | EngineFailed]


class _SideBySide:
    """Runs on one thread, what they have sent so far, and their end."""

    def __init__(
        self,
        launches: Launches,
        observers: Observer | Sequence[Observer],
        follow: Follow | None,
        deliver: Callable[[str, Record | EngineFailed], None],
    ) -> None:
        """`deliver` receives the records of each run on the engines' thread."""
        self._launches = launches
        self._told = Observers(observers)
        self._hushed = False
        host = LoopThread()
        self._threads = {
            name: EngineThread(
                launch.prepared.job,
                folder=launch.prepared.folder,
                watch=launch.watch,
                extend=launch.more_rollouts,
                deliver=partial(deliver, name),
                host=host,
                retell=self._told.any,
            )
            for name, launch in launches.items()
        }
        self._ended: dict[str, Run | EngineFailed] = {}
        self.follower = None if follow is None else follow(self._threads, launches)

    def start(self) -> None:
        """Start all runs."""
        for thread in self._threads.values():
            thread.start()

    def cancel(self) -> None:
        """Make all runs end with what they have; from here on observers raise nothing."""
        self._hushed = True
        for name, thread in self._threads.items():
            if name not in self._ended:
                thread.cancel()

    @property
    def ended(self) -> bool:
        """Whether the last record of each run is there."""
        return len(self._ended) == len(self._threads)

    def hand_on(self, name: str, record: Record | EngineFailed) -> None:
        """Take a record, and hand it to the observers."""
        if isinstance(record, Run | EngineFailed):
            self._ended[name] = record
        if isinstance(record, EngineFailed):
            return
        if self.follower is not None and not self._hushed:
            self.follower.take(name, record)
        try:
            self._told(record)
        except BaseException:
            if not self._hushed:
                raise

    def end(self) -> dict[str, RunResult]:
        """Return the results of runs that have ended, all of them written; raises what broke an engine."""
        if self.follower is not None:
            self.follower.close()
        for thread in self._threads.values():
            thread.join()
        found, broken = dict[str, RunResult](), list[BaseException]()
        for name, launch in self._launches.items():
            last = self._ended[name]
            if isinstance(last, EngineFailed):
                broken.append(last.error)
                continue
            try:
                found[name] = _result(launch, last, self._told)
            except TfgrpoError as error:  # the files of the others are written first
                broken.append(error)
        if broken:
            raise broken[0]
        return found


def _take_all(side: _SideBySide, records: queue.SimpleQueue[_Sent], timeout_s: float | None = None) -> None:
    """Hand records on until each run has sent its last one; raises TimeoutError."""
    follower = side.follower if timeout_s is None else None
    while not side.ended:
        try:
            side.hand_on(*records.get(timeout=timeout_s if follower is None else TICK_S))
        except queue.Empty:
            if follower is None:
                raise TimeoutError(f"the run did not end within {timeout_s:g} s") from None
        while not side.ended and not records.empty():
            side.hand_on(*records.get_nowait())
        if follower is not None:
            follower.tick()
        if not side.ended:
            time.sleep(GATHER_S)


async def _await_all(side: _SideBySide, records: asyncio.Queue[_Sent]) -> None:
    while not side.ended:
        side.hand_on(*(await records.get()))


def _result(launch: Launch, last: Run, told: Observers) -> RunResult:
    """Return the result of a run that has ended, once its files are written."""
    folder = launch.prepared.folder
    files = "" if folder is None else os.path.relpath(folder, launch.root)
    conclusion = launch.conclude(last, warnings=told.warnings, files=files)
    launch.write(conclusion)
    launch.record(last)
    return RunResult(
        run=conclusion.run,
        verdict=conclusion.verdict,
        report=conclusion.report,
        folder=folder,
        problems=tuple(launch.missed),
    )
