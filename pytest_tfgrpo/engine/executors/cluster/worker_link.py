"""The driver's end of a worker on a node: turns go there and answers come back in bundles."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.cluster.node import Answered, Sent, first_bundle
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import RayWorker, WorkerLost

HUNG_S = 30.0
"""How long a worker may take to say that it runs; then it hangs, and so does its node perhaps."""


class Worker:
    """A worker that is ready."""

    def __init__(self, link: RayWorker, *, node: str, places: int, host: str) -> None:
        self.link = link
        self.node = node
        """Id of its node; empty where Ray chose it."""
        self.places = places
        self.host = host
        self.in_flight = 0
        self.is_lost = False
        self.hangs = False
        self.pending: dict[str, asyncio.Future[bytes]] = {}
        """Answers of its agent that are not there yet, by the id of the attempt."""
        self._unsent: list[Sent] = []
        self._exchanges: set[asyncio.Task[None]] = set()
        """Calls of its process that send turns or collect answers."""
        self._is_collecting = False
        self._ping: asyncio.Task[None] | None = None
        self._pinged_at = 0.0

    def ping(self) -> None:
        """Check whether it answers, beside all calls of agents; it hangs where it did not for HUNG_S."""
        now = asyncio.get_running_loop().time()
        if self._ping is None or self._ping.done():
            self._ping, self._pinged_at = asyncio.create_task(quiet(self.link.ping())), now
        elif now - self._pinged_at >= HUNG_S:
            self.hangs = True
            calls: list[asyncio.Future[Any]] = [self._ping, *self._exchanges, *self.pending.values()]
            for call in calls:
                call.cancel()

    def begin(self, id_: str, data: bytes, files: Mapping[str, Any] | None) -> asyncio.Future[bytes]:
        """Return what the agent is going to answer; all turns of one tick of the loop travel together."""
        loop = asyncio.get_running_loop()
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append((id_, data, files))
        answer = self.pending[id_] = loop.create_future()
        return answer

    def _send(self) -> None:
        while self._unsent:
            self._start(self._sent(first_bundle(self._unsent)))
        if not self._is_collecting:
            self._is_collecting = True
            self._start(self._collect())

    def _start(self, exchange: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(exchange)
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)

    async def _sent(self, turns: list[Sent]) -> None:
        try:
            await self.link.call("begin", turns)
        except Exception as error:  # noqa: BLE001 - those who wait for an answer have to hear of any
            self._fail(error)

    async def _collect(self) -> None:
        """Hand answers on as they come, until none is waited for."""
        try:
            while self.pending:
                found: list[Answered] = await self.link.call("collect")
                for id_, data, why in found:
                    self._hand_on(id_, data, why)
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        finally:
            self._is_collecting = False

    def _hand_on(self, id_: str, data: bytes, why: str) -> None:
        answer = self.pending.pop(id_, None)
        if answer is None or answer.done():
            return
        if why:
            answer.set_exception(WorkerLost(why, alone=True))
        else:
            answer.set_result(data)

    def _fail(self, error: Exception) -> None:
        """Let all who wait for an answer know that the process is gone, or of no use."""
        alone = isinstance(error, WorkerLost) and error.alone
        why = str(error) if isinstance(error, WorkerLost) else line(describe(error), 500)
        for answer in self.pending.values():
            if not answer.done():
                answer.set_exception(WorkerLost(why, alone=alone))
        self.pending.clear()


async def quiet(call: Coroutine[Any, Any, Any]) -> None:
    """Await a call, whose worker may be gone."""
    with suppress(WorkerLost):
        await call
