"""A launch carried out: the engine on its own thread, observers on the caller's, the result at the end."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.harness.engine.observers import Observer, Observers, Record
from pytest_tfgrpo.harness.gate.verdict import Verdict
from pytest_tfgrpo.harness.launch.engine_thread import JOIN_S, EngineFailed, EngineThread
from pytest_tfgrpo.harness.launch.launch import Launch


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
        """True when the run is complete, without problems, and no gate fails it."""
        if self.run.status != "complete" or self.problems:
            return False
        verdict = self.verdict
        return verdict is None or not (verdict.failed or any(gate.failed for gate in verdict.gates))


def run_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a launch and return its result; observers are called on this thread.

    Ctrl-C cancels the run, waits until it is flushed and reported, and raises KeyboardInterrupt again.
    Raises TfgrpoError when its files cannot be written.
    """
    told = Observers(observers)
    thread = EngineThread(launch.prepared.job, folder=launch.prepared.folder, watch=launch.watch)
    thread.start()
    try:
        last = _take_all(thread, told)
    except BaseException:
        thread.cancel()
        _end(launch, _take_all(thread, told, timeout_s=JOIN_S), told, thread)
        raise
    return _end(launch, last, told, thread)


async def arun_launch(launch: Launch, observers: Observer | Sequence[Observer] = ()) -> RunResult:
    """Carry out a launch and return its result; observers are called on this event loop.

    Cancelling it cancels the run, waits until that is flushed and reported, and raises again. Raises
    TfgrpoError when its files cannot be written.
    """
    told = Observers(observers)
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[Record | EngineFailed] = asyncio.Queue()

    def deliver(record: Record | EngineFailed) -> None:
        loop.call_soon_threadsafe(records.put_nowait, record)

    thread = EngineThread(
        launch.prepared.job, folder=launch.prepared.folder, watch=launch.watch, deliver=deliver
    )
    thread.start()
    try:
        last = await _await_all(records, told)
    except BaseException:
        thread.cancel()
        last = await asyncio.wait_for(_await_all(records, told), JOIN_S)
        await asyncio.to_thread(_end, launch, last, told, thread)
        raise
    return await asyncio.to_thread(_end, launch, last, told, thread)


def _take_all(thread: EngineThread, told: Observers, timeout_s: float | None = None) -> Run | EngineFailed:
    """Return the last record; raises TimeoutError when none comes within `timeout_s`."""
    while True:
        try:
            record = thread.records.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"the run did not end within {timeout_s:g} s") from None
        if not isinstance(record, EngineFailed):
            told(record)
        if isinstance(record, Run | EngineFailed):
            return record


async def _await_all(records: asyncio.Queue[Record | EngineFailed], told: Observers) -> Run | EngineFailed:
    while True:
        record = await records.get()
        if not isinstance(record, EngineFailed):
            told(record)
        if isinstance(record, Run | EngineFailed):
            return record


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
