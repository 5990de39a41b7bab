"""A launch carried out: the engine on its own thread, observers on the caller's, the result at the end."""

from __future__ import annotations

import asyncio
import os
import queue
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.python.collector import collecting_seldom
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.engine.observers import EngineFailed, Observer, Observers, Record
from pytest_tfgrpo.gate.verdict import Verdict
from pytest_tfgrpo.launch.engine_thread import JOIN_S, EngineThread
from pytest_tfgrpo.launch.exit_guard import guard_exits
from pytest_tfgrpo.launch.launch import Launch

GATHER_S = 0.005
"""How long records gather before they are handed on: to wake a thread for each one costs more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """What a run came to."""

    run: Run
    """The run with every group, rollout and score, complete or not (see `status`)."""
    verdict: Verdict | None
    """What the gate found; None for a run without learning and without a gate setting."""
    report: Report
    """The report, as in ``report.json``."""
    folder: Path | None
    """Where its files are; None when nothing was written."""
    problems: tuple[str, ...] = ()
    """Why it fails whatever its gate says: what a replay could not answer."""

    @property
    def passed(self) -> bool:
        """True when the run is complete, without problems, and no gate fails it.

        The minimum scores of single scenarios, which pytest's items check, do not count here.
        """
        if self.run.status != "complete" or self.problems:
            return False
        verdict = self.verdict
        return verdict is None or not (verdict.failed or any(gate.failed for gate in verdict.gates))


def run_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a launch and return its result; observers are called on this thread.

    Ctrl-C cancels the run, waits until it is flushed and reported, and raises KeyboardInterrupt again.
    Raises TfgrpoError when its files cannot be written.
    """
    with guard_exits(), collecting_seldom():
        return _run(launch, observers)


def _run(launch: Launch, observers: Observer | Sequence[Observer]) -> RunResult:
    told, ended = Observers(observers), list[Run | EngineFailed]()
    thread = EngineThread(
        launch.prepared.job,
        folder=launch.prepared.folder,
        watch=launch.watch,
        extend=launch.more_rollouts,
        retell=told.any,
    )
    thread.start()
    try:
        _take_all(thread, told, ended)
    except BaseException:
        thread.cancel()
        _take_all(thread, _hushed(told), ended, timeout_s=JOIN_S)
        _end(launch, ended[0], told, thread)
        raise
    return _end(launch, ended[0], told, thread)


async def arun_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a launch and return its result; observers are called on this event loop.

    Cancelling it cancels the run, waits until that is flushed and reported, and raises again. Raises
    TfgrpoError when its files cannot be written.
    """
    with guard_exits(), collecting_seldom():
        return await _arun(launch, observers)


async def _arun(launch: Launch, observers: Observer | Sequence[Observer]) -> RunResult:
    told, ended = Observers(observers), list[Run | EngineFailed]()
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[Record | EngineFailed] = asyncio.Queue()

    def deliver(record: Record | EngineFailed) -> None:
        loop.call_soon_threadsafe(records.put_nowait, record)

    thread = EngineThread(
        launch.prepared.job,
        folder=launch.prepared.folder,
        watch=launch.watch,
        extend=launch.more_rollouts,
        deliver=deliver,
        retell=told.any,
    )
    thread.start()

    async def finish() -> None:
        await asyncio.wait_for(_await_all(records, _hushed(told), ended), JOIN_S)
        await asyncio.to_thread(_end, launch, ended[0], told, thread)

    try:
        await _await_all(records, told, ended)
    except BaseException:
        thread.cancel()
        finishing = loop.create_task(finish())
        while not finishing.done():
            with suppress(asyncio.CancelledError):  # being cancelled again changes nothing
                await asyncio.shield(finishing)
        raise
    return await asyncio.to_thread(_end, launch, ended[0], told, thread)


def _hushed(told: Observers) -> Callable[[Record], None]:
    """Return an observer that raises nothing, whatever `told` raises: the run is being ended."""

    def tell(record: Record) -> None:
        with suppress(BaseException):
            told(record)

    return tell


def _take_all(
    thread: EngineThread,
    told: Callable[[Record], None],
    ended: list[Run | EngineFailed],
    timeout_s: float | None = None,
) -> None:
    """Hand records on until the last one, which is put into `ended`; raises TimeoutError."""
    records = thread.records
    while not ended:
        try:
            _hand_on(records.get(timeout=timeout_s), told, ended)
        except queue.Empty:
            raise TimeoutError(f"the run did not end within {timeout_s:g} s") from None
        while not ended and not records.empty():
            _hand_on(records.get_nowait(), told, ended)
        if not ended:
            time.sleep(GATHER_S)


async def _await_all(
    records: asyncio.Queue[Record | EngineFailed],
    told: Callable[[Record], None],
    ended: list[Run | EngineFailed],
) -> None:
    while not ended:
        _hand_on(await records.get(), told, ended)


def _hand_on(
    record: Record | EngineFailed, told: Callable[[Record], None], ended: list[Run | EngineFailed]
) -> None:
    if isinstance(record, Run | EngineFailed):
        ended.append(record)
    if not isinstance(record, EngineFailed):
        told(record)


def _end(launch: Launch, last: Run | EngineFailed, told: Observers, thread: EngineThread) -> RunResult:
    """Return the result of a run that has ended; raises what broke its engine."""
    thread.join()
    if isinstance(last, EngineFailed):
        raise last.error
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
