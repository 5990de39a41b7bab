"""The stand-in: an actor for the engine, whose calls are made by workers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.executors.protocol import AgentWorkers, LeasedWorker
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply
from pytest_tfgrpo.protocols import Actor, ActorCall, as_conversational


class RemoteActor:
    """Has a worker make each call of an actor; a rollout has one worker for all its turns."""

    def __init__(self, actor: Actor, workers: AgentWorkers) -> None:
        self.name = actor.name
        self.paid = actor.paid
        self.identity: Mapping[str, Json] = actor.identity
        self.converses = as_conversational(actor) is not None
        self._actor = actor
        self._workers = workers

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        turn = _turn(call, None)
        async with self._workers.lease() as worker:
            return _taken(await worker.ask(turn), call)

    def open_session(self, call: ActorCall) -> RemoteSession:
        """Return a conversation with one worker."""
        return RemoteSession(call, self._workers)

    def bound(self, call_count: int) -> Mapping[str, float | None]:
        """Return what the actor declares."""
        return self._actor.bound(call_count)

    async def aclose(self) -> None:
        """Do nothing: the run closes the actor, and the executor its workers."""


class RemoteSession:
    """A conversation with an agent in a worker, which is held until it is over."""

    def __init__(self, call: ActorCall, workers: AgentWorkers) -> None:
        self._call = call
        self._workers = workers
        self._held = AsyncExitStack()
        self._worker: LeasedWorker | None = None
        self._id = ""

    async def answer(self, message: str) -> Trajectory:
        """Return the answer to a message; see Session."""
        turn = _turn(self._call, message)
        if self._worker is None:
            self._worker, self._id = await self._held.enter_async_context(self._workers.lease()), turn.id
        return _taken(await self._worker.ask(replace(turn, id=self._id)), self._call)

    async def aclose(self) -> None:
        """End the conversation, and return the worker."""
        async with self._held:
            if self._worker is not None:
                await self._worker.end(self._id)


def lost_calls(count: int) -> list[str]:
    """Return what to say of calls that ended with their worker."""
    if not count:
        return []
    return [
        f"{plural(count, 'call')} of the agent ended with a worker that was lost (lost_worker); each ran "
        "once more on another worker"
    ]


def _turn(call: ActorCall, message: str | None) -> AgentTurn:
    return AgentTurn(
        id=secrets.token_hex(8),
        call=replace(call, traceparent=None, span_counts=None),
        traceparent="" if call.traceparent is None else call.traceparent(),
        message=message,
    )


def _taken(reply: WorkerReply, call: ActorCall) -> Trajectory:
    """Return what a worker made of a call, as if it had been made here; raises its fault."""
    if call.span_counts is not None:
        for reason, count in reply.unused.items():
            call.span_counts.count(reason, count)
        call.span_counts.wanted = call.span_counts.wanted or reply.wanted
    if reply.fault is not None:
        raise reply.fault
    if reply.trajectory is None:
        raise asyncio.CancelledError
    if not isinstance(reply.trajectory, Trajectory):
        raise AgentFailure(f"the worker returned {type(reply.trajectory).__name__}", "garbage")
    return reply.trajectory
