"""The engine's thread: a background thread with the event loop, for one run or for several side by side."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.python.threads import start_thread
from pytest_tfgrpo.core.records import CheckerResult, Run
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.observers import EngineFailed, Record
from pytest_tfgrpo.protocols import Actor, OpenWatch
from pytest_tfgrpo.runs.job import Job

JOIN_S = 30.0


class LoopThread:
    """A background thread with an event loop, on which the engines of a session run."""

    def __init__(self) -> None:
        """Nothing runs before `start`."""
        self._mains: list[Callable[[], Coroutine[object, object, None]]] = []
        self._failures: list[Callable[[BaseException], None]] = []
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    def add(
        self, main: Callable[[], Coroutine[object, object, None]], fail: Callable[[BaseException], None]
    ) -> None:
        """Run `main` too, which raises nothing; `fail` receives what breaks the loop itself."""
        self._mains.append(main)
        self._failures.append(fail)

    def start(self) -> None:
        """Start everything that was added; once it has begun, do nothing."""
        if not self._ready.is_set():
            self._thread = start_thread(self._main, "tfgrpo-engine")
            self._ready.wait()

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, while it lasts."""
        if self._thread is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # the loop has just ended by itself
                self._loop.call_soon_threadsafe(function)

    def join(self) -> bool:
        """Wait for the thread to end, at most JOIN_S seconds; returns whether it has."""
        if self._thread is None:
            return True
        self._thread.join(JOIN_S)
        return not self._thread.is_alive()

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._run_all())
        except BaseException as error:  # noqa: BLE001 - passed to the caller's thread
            for fail in self._failures:
                fail(error)
        finally:
            self._ready.set()

    async def _run_all(self) -> None:
        tasks = [asyncio.create_task(main()) for main in self._mains]
        await asyncio.sleep(0)  # each has made its engine, which the caller may speak to now
        self._ready.set()
        await asyncio.gather(*tasks)


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
        host: LoopThread | None = None,
        retell: bool = True,
    ) -> None:
        """Prepare; nothing runs before `start`. When `paced`, a phase starts once `open_phase` allows it.

        Engines of one `host` run side by side, and may share a budget; without it this one runs alone.

        `deliver` is called on the engine's thread with every record, at last a Run or EngineFailed; without
        it they are put into `records`. Without `retell` a resumed run leaves out the rollouts and groups
        that it has on file.
        """
        self._job = job
        self._folder = folder
        self._watch = watch
        self._extend = extend
        self._paced = paced
        self._failed = False
        self._retell = retell
        self.gauge = Gauge()
        self._engine: Engine
        self._task: asyncio.Task[Run] | None = None
        self._host = host or LoopThread()
        self._host.add(self._run_apart, self._fail)
        self.records: queue.SimpleQueue[Record | EngineFailed] = queue.SimpleQueue()
        self._deliver = deliver or self.records.put

    def start(self) -> None:
        """Start the run, and all others that share its loop."""
        self._host.start()

    def judge(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Hand over what a marked test function found."""
        self._call(lambda: self._engine.judge(rollout_id, checker_result))

    def supply(self, rollout_id: str, agent: Actor) -> None:
        """Hand over the agent of a rollout whose fixtures are set up now."""
        self._call(lambda: self._engine.supply(rollout_id, agent))

    def open_phase(self, epoch: int | None) -> None:
        """Let all phases start up to that of `epoch`; None: every phase."""
        self._call(lambda: self._engine.open_phase(epoch))

    def close_judging(self, epoch: int) -> None:
        """Say that no test function of `epoch` will run any more."""
        self._call(lambda: self._engine.close_judging(epoch))

    def cancel(self, why: str = "interrupted") -> None:
        """Make the run end with what it has; the last record follows, and says why."""
        self._call(lambda: self._task and self._task.cancel(why))

    def join(self) -> bool:
        """Wait for the thread to end, at most JOIN_S seconds; returns whether it has."""
        return self._host.join()

    def _call(self, function: Callable[[], object]) -> None:
        self._host.call(function)

    async def _run_apart(self) -> None:
        """Run this engine; what breaks it breaks no other."""
        try:
            await self._run()
        except BaseException as error:  # noqa: BLE001 - passed to the caller's thread
            self._fail(error)

    async def _run(self) -> None:
        self._engine = Engine(
            self._job,
            folder=self._folder,
            observe=self._deliver,
            watch=self._watch,
            extend=self._extend,
            paced=self._paced,
            gauge=self.gauge,
            retell=self._retell,
        )
        self._task = asyncio.create_task(self._engine.run())
        try:
            await self._task
        except BaseException as error:  # noqa: BLE001 - passed on before the loop waits for tasks that will not end
            self._fail(error)
        for close in (self._job.actor.aclose, *self._job.closing):
            with suppress(Exception):  # the run is over, and each of them must have its turn
                await close()

    def _fail(self, error: BaseException) -> None:
        """Deliver what broke the engine, once."""
        if not self._failed:
            self._failed = True
            self._deliver(EngineFailed(error))
