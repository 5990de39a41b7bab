"""The engine's thread: one background thread with the event loop; records cross by a queue."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.records import CheckerResult, Run
from pytest_tfgrpo.harness.engine.engine import Engine
from pytest_tfgrpo.harness.engine.observers import Record
from pytest_tfgrpo.harness.run.job import Job

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.sequential import OpenWatch

JOIN_S = 30.0


class EngineFailed:
    """Sent as the last record when the engine raised instead of returning a run."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class EngineThread:
    """Runs an engine beside its caller; every method is called on the caller's thread."""

    def __init__(
        self,
        job: Job,
        *,
        folder: Path | None,
        watch: OpenWatch | None = None,
        extend: Callable[[Run], int] | None = None,
        paced: bool = False,
        deliver: Callable[[Record | EngineFailed], None] | None = None,
    ) -> None:
        """Prepare; nothing runs before `start`. When `paced`, a phase starts once `open_phase` allows it.

        `deliver` is called on the engine's thread with every record, at last a Run or EngineFailed; without
        it they are put into `records`.
        """
        self._job = job
        self._folder = folder
        self._watch = watch
        self._extend = extend
        self._paced = paced
        self._failed = False
        self._engine: Engine
        self._task: asyncio.Task[Run] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="tfgrpo-engine", daemon=True)
        self.records: queue.SimpleQueue[Record | EngineFailed] = queue.SimpleQueue()
        self._deliver = deliver or self.records.put

    def start(self) -> None:
        """Start the run."""
        self._thread.start()
        self._ready.wait()

    def judge(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Hand over what a marked test function found."""
        self._call(lambda: self._engine.judge(rollout_id, checker_result))

    def open_phase(self, epoch: int | None) -> None:
        """Let all phases start up to that of `epoch`; None: every phase."""
        self._call(lambda: self._engine.open_phase(epoch))

    def close_judging(self, epoch: int) -> None:
        """Say that no test function of `epoch` will run any more."""
        self._call(lambda: self._engine.close_judging(epoch))

    def cancel(self) -> None:
        """Ask the run to end with what it has; the last record follows."""
        self._call(lambda: self._task and self._task.cancel())

    def join(self) -> bool:
        """Wait for the thread to end, at most JOIN_S seconds; returns whether it has."""
        self._thread.join(JOIN_S)
        return not self._thread.is_alive()

    def _call(self, function: Callable[[], object]) -> None:
        if self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(function)
            except RuntimeError:  # the loop has just ended by itself
                return

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._run())
        except BaseException as error:  # noqa: BLE001 - told to the caller's thread
            self._fail(error)
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._engine = Engine(
            self._job,
            folder=self._folder,
            observe=self._deliver,
            watch=self._watch,
            extend=self._extend,
            paced=self._paced,
        )
        self._task = asyncio.create_task(self._engine.run())
        self._ready.set()
        try:
            await self._task
        except BaseException as error:  # noqa: BLE001 - told before the loop waits for tasks that will not end
            self._fail(error)
        for close in (self._job.actor.aclose, *self._job.closing):
            with suppress(Exception):  # the run is over, and each of them must have its turn
                await close()

    def _fail(self, error: BaseException) -> None:
        """Deliver what broke the engine, once."""
        if not self._failed:
            self._failed = True
            self._deliver(EngineFailed(error))
