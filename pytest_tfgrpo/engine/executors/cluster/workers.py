"""Workers on the nodes of a cluster: who makes which call, what is lost with a node, and who takes over."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import LOST_WORKER, AgentFailure, ProviderError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.node import NodeAnswer, NodeFacts, NodeTurn
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import (
    ClusterNode,
    RayCluster,
    RayWorker,
    WorkerLost,
)
from pytest_tfgrpo.engine.executors.cluster.worker_link import HUNG_S, Worker, quiet
from pytest_tfgrpo.engine.executors.cluster.workspace_transfer import LeftFile, left_in, put_into
from pytest_tfgrpo.engine.executors.protocol import GRACE_S
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply
from pytest_tfgrpo.llm.limits.queueing import current_ticket

LOOK_S = 2.0
"""How often the nodes of the cluster are looked at."""
NOBODY_S = 60.0
"""How long a rollout waits while there is no worker, and none is starting, or all fail to start."""
PING_S = 5.0
"""How often the run checks that workers answer."""
CLOSE_S = 4.0
"""How long workers may take to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outfit:
    """What each worker opens its agent with."""

    setup: bytes
    """A pickled `WorkerSetup`."""
    run: str
    """Id of the run."""
    paths: tuple[str, ...]
    """Folders below the root that modules are looked for in."""
    need: Resources
    """What one rollout takes of its node; with nothing, a node has one worker for all of its rollouts."""
    most: int
    """Rollouts in flight at most."""
    suites: Mapping[str, str]
    """Folders of suites, below the root, by the stamp of an environment that is described there."""

    @property
    def opening(self) -> tuple[object, ...]:
        """Return what `NodeWorker.open` takes."""
        return self.setup, self.run, self.paths, self.suites


class ClusterWorkers:
    """All workers of a run."""

    def __init__(self, cluster: RayCluster, outfit: Outfit, ready: Sequence[Worker] = ()) -> None:
        self._cluster = cluster
        self.outfit = outfit
        self._workers = list(ready)
        """Those that are ready."""
        self._starting: dict[asyncio.Task[None], str] = {}
        """The id of the node of each; empty where Ray chooses it."""
        self._all = {worker.link for worker in ready}
        self._waiting: deque[asyncio.Event] = deque()
        self._watching: list[asyncio.Task[None]] = []
        self._look = asyncio.Event()
        self._why = "it has no node"
        self._failing: dict[str, float] = {}
        """Since when no worker starts on a node, by its id; empty where Ray chooses the node."""
        self._kept: dict[str, Any] = {}
        self.lost = 0
        """Calls that ended with their worker, through no fault of the agent that is known."""
        self.suspects: set[tuple[str, int]] = set()
        """Rollouts, by task and seed, that were in flight when the process of their worker ended."""

    def lease(self) -> AbstractAsyncContextManager[ClusterLease]:
        """Return a worker for one rollout; see Workers."""
        return self._lease()

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[ClusterLease]:
        with current_ticket().waiting():
            worker = await self._free()
        lease = ClusterLease(self, worker)
        try:
            yield lease
        finally:
            worker.in_flight -= 1
            await lease.aclose()
            self._wake()

    async def _free(self) -> Worker:
        """Return the worker with most room, and count on it; raises ProviderError where there is none."""
        if not self._watching:
            self._watching = [asyncio.create_task(one) for one in (self._watch(), self._listen())]
        worker = None if self._waiting else self._roomiest()
        if worker is None:
            worker = await self._turn()
        worker.in_flight += 1
        return worker

    def _roomiest(self) -> Worker | None:
        with_room = (worker for worker in self._workers if worker.in_flight < worker.places)
        return min(with_room, key=lambda one: one.in_flight, default=None)

    async def _turn(self) -> Worker:
        """Wait for a worker with room, behind those who came before."""
        turn = asyncio.Event()
        self._waiting.append(turn)
        self._look.set()
        try:
            while self._waiting[0] is not turn or (worker := self._roomiest()) is None:
                turn.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(NOBODY_S):
                        await turn.wait()
                if not (turn.is_set() or self._workers or self._may_start()):
                    raise ProviderError(f"the cluster has no worker any more: {self._why}", "connection")
            return worker
        finally:
            self._waiting.remove(turn)
            self._wake()

    def _may_start(self) -> bool:
        """Return whether a worker is starting where others have not failed to for NOBODY_S."""
        now = asyncio.get_running_loop().time()
        return any(now - self._failing.get(node, now) < NOBODY_S for node in self._starting.values())

    def _wake(self) -> None:
        """Let the first of those who wait look again; it wakes the next."""
        if self._waiting:
            self._waiting[0].set()

    async def _watch(self) -> None:
        """Start workers on nodes that have none, also on those that join later."""
        while True:
            nodes = await asyncio.to_thread(self._cluster.nodes)
            if not nodes:
                self._why = "its head does not answer"
            for node in self._lacking(nodes) if nodes else ():
                task = asyncio.create_task(self._start(node))
                self._starting[task] = "" if node is None else node.id
                task.add_done_callback(self._starting.pop)
            self._look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look.wait()
                    await asyncio.sleep(0.01)

    async def _listen(self) -> None:
        """Give up workers that answer no more, though nothing says that they are gone."""
        while True:
            await asyncio.sleep(PING_S)
            for worker in tuple(self._workers):
                worker.ping()
                if worker.hangs:
                    self.drop(worker)
                    self.end(worker.link)

    def _lacking(self, nodes: list[ClusterNode]) -> list[ClusterNode | None]:
        """Return for each worker to be started its node; None: wherever what it needs is free."""
        if self.outfit.need.wanted:
            wanted = min(self.outfit.most, sum(w.in_flight for w in self._workers) + len(self._waiting))
            return [None] * (wanted - len(self._workers) - len(self._starting))
        has = {worker.node for worker in self._workers} | set(self._starting.values())
        return [node for node in nodes if node.id not in has]

    async def _start(self, node: ClusterNode | None) -> None:
        where = "" if node is None else node.id
        try:
            worker = await self.started(node)
        except ProviderError as error:
            self._why = str(error)
            self._failing.setdefault(where, asyncio.get_running_loop().time())
            await asyncio.sleep(LOOK_S)
            return
        self._failing.pop(where, None)
        self._workers.append(worker)
        self._wake()

    async def started(self, node: ClusterNode | None, *, alone: bool = False) -> Worker:
        """Return a worker that has opened its agent; raises ProviderError (LOST_WORKER)."""
        single = alone or bool(self.outfit.need.wanted)
        places = 1 if single else self.outfit.most
        link = self._cluster.start(self.outfit.need, places, node)
        try:
            facts: NodeFacts = await link.call("open", *self.outfit.opening)
        except WorkerLost as error:
            raise ProviderError(f"a worker did not start: {error}", LOST_WORKER) from error
        except asyncio.CancelledError:  # its node may be gone, and nobody waits for it
            link.kill()
            raise
        if facts.problem or facts.lacks:
            link.kill()
            why = f"cannot open the agent: {facts.problem}" if facts.problem else "lacks an environment"
            raise ProviderError(f"{facts.host} {why}", LOST_WORKER)
        self._all.add(link)
        return Worker(link, node="" if node is None else node.id, places=places, host=facts.host)

    def content(self, path: Path, sha256: str) -> Any:
        """Return a file that travels to nodes once, by its stamp; raises ProviderError."""
        if sha256 not in self._kept:
            self._kept[sha256] = self._cluster.keep(path)
        return self._kept[sha256]

    def drop(self, worker: Worker) -> None:
        """Send a worker no further calls."""
        if worker in self._workers:
            self._workers.remove(worker)
        self._all.discard(worker.link)
        self._look.set()

    def end(self, link: RayWorker) -> None:
        """End the process of a worker at once."""
        self._all.discard(link)
        link.kill()

    async def aclose(self) -> None:
        """Let agents release what they hold; end all workers."""
        tasks = [*self._starting, *self._watching]
        for task in tasks:
            task.cancel()
        links = tuple(self._all)
        try:
            if links:
                await _all(*(link.call("close") for link in links))
        finally:
            for link in links:
                self.end(link)
            if links:
                await _all(*(link.call("cancel", "") for link in links))  # raises once they are gone


class ClusterLease:
    """A place on a worker during one rollout."""

    def __init__(self, workers: ClusterWorkers, worker: Worker) -> None:
        self._workers = workers
        self._worker = worker
        self._alone: Worker | None = None
        """A worker of its own, of a rollout whose agent may have ended the process of one."""

    async def ask(self, turn: AgentTurn) -> WorkerReply:
        """Return what the agent answers; see Lease."""
        key = (turn.call.task.id, turn.call.seed)
        if key in self._workers.suspects and self._alone is None:
            near = ClusterNode(id=self._worker.node, host=self._worker.host)  # where one answers
            with current_ticket().waiting():
                self._alone = await self._workers.started(near, alone=True)
        worker = self._alone or self._worker
        single = worker.places == 1
        workspace = turn.call.workspace
        before = await asyncio.to_thread(left_in, workspace) if workspace.made else None
        pending = self._begin(worker, turn, before)
        try:
            data = await asyncio.shield(pending)
        except asyncio.CancelledError:
            if worker.hangs and pending.cancelled():
                raise self._lost(worker, f"it has not answered for {HUNG_S:g} s") from None
            late = await self._last_words(worker, turn, pending)
            if late is None:
                raise
            data = late
        except WorkerLost as error:
            if error.alone and single:
                self._give_up(worker)
                return WorkerReply(
                    fault=AgentFailure(f"the agent's process ended before it had answered: {error}", "crash")
                )
            if error.alone:
                self._workers.suspects.add(key)
            raise self._lost(worker, str(error)) from error
        answer: NodeAnswer = pickle.loads(data)
        if answer.left is not None:
            await asyncio.to_thread(put_into, workspace, answer.left, before or [])
        reply: WorkerReply = pickle.loads(answer.reply)
        return reply

    def _give_up(self, worker: Worker) -> None:
        worker.is_lost = True
        self._workers.drop(worker)

    def _lost(self, worker: Worker, why: str) -> ProviderError:
        """Give a worker up, and return what that is to its rollout."""
        self._give_up(worker)
        self._workers.lost += 1
        return ProviderError(f"the worker on {worker.host} was lost: {why}", LOST_WORKER)

    def _begin(self, worker: Worker, turn: AgentTurn, before: list[LeftFile] | None) -> asyncio.Future[bytes]:
        asked = turn.call.workspace
        files = {one.sha256: self._workers.content(one.path, one.sha256) for one in asked.attachments}
        if asked.archive is not None:
            files[asked.archive.sha256] = self._workers.content(asked.archive.path, asked.archive.sha256)
        return worker.begin(turn.id, pickle.dumps(NodeTurn(turn=turn, before=before)), files or None)

    async def _last_words(
        self, worker: Worker, turn: AgentTurn, pending: asyncio.Future[bytes]
    ) -> bytes | None:
        """Cancel what a worker does; return what the agent says to that in time, else end the worker."""
        cancelling = asyncio.create_task(quiet(worker.link.call("cancel", turn.id)))
        with suppress(asyncio.CancelledError):
            await asyncio.wait([pending], timeout=GRACE_S)
        cancelling.cancel()
        if not pending.done():
            pending.cancel()
        elif pending.exception() is None:
            return pending.result()
        self._workers.drop(worker)
        self._workers.end(worker.link)
        return None

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt."""
        worker = self._alone or self._worker
        if not worker.is_lost:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await quiet(worker.link.call("end", id_))

    async def aclose(self) -> None:
        """Give up the worker of its own, if there is one."""
        if self._alone is not None:
            self._workers.end(self._alone.link)


async def _all(*calls: Coroutine[Any, Any, Any]) -> None:
    """Wait for calls, as long as workers may take to end."""
    await asyncio.wait([asyncio.create_task(quiet(call)) for call in calls], timeout=CLOSE_S)
