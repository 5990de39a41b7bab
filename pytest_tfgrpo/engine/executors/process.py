"""The executor ``process[:N]``: warm worker processes, each with an interpreter of its own, one rollout each.

For agents that block or compute, or that may end their process: each costs its own rollout only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.local import run_in_order
from pytest_tfgrpo.engine.executors.remote_actor import RemoteActor, lost_calls
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply, WorkerSetup
from pytest_tfgrpo.engine.executors.worker_process import ENDED, WorkerProcess
from pytest_tfgrpo.llm.limits.queueing import current_ticket
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import Actor

T = TypeVar("T")
STARTS = 3
"""How often a worker is started that something else ends before it is ready."""


def worker_count(argument: str) -> int:
    """Return how many workers ``process:<argument>`` has: as many as there are processors, unless it says."""
    if argument:
        return int(argument)
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessExecutor:
    """Has the calls of one actor made by worker processes; everything else runs here."""

    def __init__(self, actor: Actor, setup: WorkerSetup, places: int) -> None:
        self.places = places
        self.notes: Sequence[str] = ()
        self.warnings: Sequence[str] = ()
        self._actor = actor
        self._workers = ProcessWorkers(setup, places)
        self._stand_in = RemoteActor(actor, self._workers)

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item, one for each worker at a time."""
        await run_in_order(items, work, self.places)

    def place(self, actor: Actor) -> Actor:
        """Return the stand-in of the run's actor; the agents of fixtures are called here."""
        return self._stand_in if actor is self._actor else actor

    async def aclose(self) -> None:
        """End all workers."""
        self.warnings = lost_calls(self._workers.lost)
        await self._workers.aclose()


class ProcessWorkers:
    """Worker processes, started as they are needed and used again and again."""

    def __init__(self, setup: WorkerSetup, count: int) -> None:
        self._setup = setup
        self._free = asyncio.Semaphore(count)
        self._idle: list[WorkerProcess] = []
        self._alive: set[WorkerProcess] = set()
        """Those that run, or have not been buried yet."""
        self.lost = 0
        """Calls that ended with their worker, through no fault of the agent that is known."""

    def lease(self) -> AbstractAsyncContextManager[ProcessLease]:
        """Return a worker for one rollout; see AgentWorkers."""
        return self._lease()

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[ProcessLease]:
        with current_ticket().waiting():
            await self._free.acquire()
        try:
            with current_ticket().waiting():
                worker = await self._ready()
            try:
                yield ProcessLease(self, worker)
            finally:
                self._put_back(worker)
        finally:
            self._free.release()

    async def _ready(self) -> WorkerProcess:
        """Return a worker that is ready; raises ProviderError where none can be started."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_usable:
                return worker
            worker.kill()
        for _ in range(STARTS):
            worker = WorkerProcess(self._alive.discard)
            self._alive.add(worker)
            try:
                why = await worker.start(self._setup)
            except BaseException:
                worker.kill()
                raise
            if not why:
                return worker
            worker.kill()
            if why != ENDED:
                break
        message = f"a worker process cannot open the agent: {line(redact(why), 500)}"
        raise ProviderError(message, "connection")

    def _put_back(self, worker: WorkerProcess) -> None:
        if worker.is_usable:
            self._idle.append(worker)
        else:
            worker.kill()

    async def aclose(self) -> None:
        """Let idle workers release what their agents hold, and end all."""
        workers, self._idle = tuple(self._alive), []
        try:
            await asyncio.gather(*(worker.aclose() for worker in workers))
        finally:
            for worker in workers:
                worker.kill()


class ProcessLease:
    """A worker process during one rollout."""

    def __init__(self, workers: ProcessWorkers, worker: WorkerProcess) -> None:
        self._workers = workers
        self._worker = worker

    async def ask(self, turn: AgentTurn) -> WorkerReply:
        """Return what the agent answers; see LeasedWorker."""
        workspace = turn.call.workspace
        if not workspace.made:  # in the folder of the run, which this process keeps
            if workspace.attachments:
                await asyncio.to_thread(workspace.make)
            else:
                workspace.make()
        try:
            return await self._worker.ask(turn)
        except ProviderError:
            self._workers.lost += 1
            raise

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt."""
        await self._worker.end(id_)
