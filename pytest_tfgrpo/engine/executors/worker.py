"""What a worker does, wherever it runs: it opens the agent, and answers one call after the other.

Nothing here knows by what means calls and replies travel; all that travels can be pickled.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace
from pathlib import Path

from pytest_tfgrpo.actors.output import total_max_bytes
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError, RolloutFault, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.attempts.attempt import NOTHING, ask_once
from pytest_tfgrpo.protocols import Actor, ActorCall, Session, as_conversational
from pytest_tfgrpo.telemetry.traces.provider import within_trace
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

ROOM_BYTES = 2**20
"""Beyond what an answer and its frames may have, in a reply."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSetup:
    """What a worker opens its agent with."""

    agent: Callable[..., Actor] | bytes
    """What opens the agent from its `root`, or an agent that was supplied, pickled."""
    root: Path
    """The root folder of the project."""
    search: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    """Where modules are looked for: ``sys.path`` of the driver."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTurn:
    """What an agent receives: one task, or the next message of a conversation."""

    id: str
    """Of the attempt; all turns of a conversation have the same."""
    call: ActorCall
    """Without what cannot travel, its `traceparent` and `span_counts`."""
    traceparent: str = ""
    """The W3C trace context of the rollout's span; empty without telemetry."""
    message: str | None = None
    """What the user says; None: there is one question, the call's prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReply:
    """What an agent answered: a trajectory, or why there is none."""

    trajectory: Trajectory | None = None
    fault: RolloutFault | None = None
    """AgentFailure or ProviderError; None with neither: a turn was cancelled."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """What was not used of the agent's spans, counted by reason."""
    wanted: bool = False
    """True where frames were looked for in its spans."""


class WorkerAgent:
    """The agent of a worker. One caller uses it at a time, or several where the worker is shared."""

    def __init__(self, setup: WorkerSetup) -> None:
        """Open the agent; raises ActorError, and whatever unpickling or importing raises."""
        self._actor = (
            _unpickled(setup.agent) if isinstance(setup.agent, bytes) else setup.agent(root=setup.root)
        )
        self._sessions: dict[str, Session] = {}

    async def answer(self, turn: AgentTurn) -> WorkerReply:
        """Return what the agent answers; raises nothing. Cancelled, it returns what is known by then."""
        counts, context = SpanCounts(), turn.traceparent
        call = replace(turn.call, traceparent=(lambda: context) if context else None, span_counts=counts)
        around = _around(context)
        if turn.message is None:
            made = await ask_once(self._actor, call, around, None)
            if isinstance(made, Trajectory):
                reply = WorkerReply(trajectory=made)
            else:
                reply = WorkerReply(fault=_plain(made[1]))
        else:
            with around:
                reply = await self._go_on(turn.id, call, turn.message)
        return replace(reply, unused=counts.counted, wanted=counts.wanted)

    async def _go_on(self, id_: str, call: ActorCall, message: str) -> WorkerReply:
        """Return what the agent answers to the next message of a conversation."""
        try:
            if id_ not in self._sessions:
                talker = as_conversational(self._actor)
                if talker is None:
                    raise AgentFailure(f"{self._actor.name!r} holds no conversation", "crash")
                self._sessions[id_] = talker.open_session(call)
            return WorkerReply(trajectory=await self._sessions[id_].answer(message))
        except RolloutFault as fault:
            return WorkerReply(fault=_plain(fault))
        except asyncio.CancelledError:
            return WorkerReply()
        except BaseException as error:  # noqa: BLE001 - a crashing agent is data
            return WorkerReply(fault=AgentFailure(describe(error), "crash"))

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt, if there is one; raises nothing but cancellation."""
        session = self._sessions.pop(id_, None)
        if session is not None:
            try:
                await session.aclose()
            except Exception:  # noqa: BLE001 - the attempt is over, whatever the agent makes of it
                return

    async def aclose(self) -> None:
        """Release what the agent holds; raises what it raises."""
        await self._actor.aclose()


def pickled(reply: WorkerReply, turn: AgentTurn) -> bytes:
    """Return a reply as bytes; one that cannot be pickled, or is far too large, is the agent's failure."""
    try:
        data = pickle.dumps(reply)
    except Exception as error:  # noqa: BLE001 - an agent may return anything
        why = f"the agent returned what cannot be pickled: {describe(error)}"
        return pickle.dumps(WorkerReply(fault=AgentFailure(why, "garbage")))
    most = 4 * total_max_bytes(turn.call.answer_max_bytes) + ROOM_BYTES
    if len(data) > most:
        why = f"the agent returned {len(data)} bytes, more than {most}"
        return pickle.dumps(WorkerReply(fault=AgentFailure(why, "oversize")))
    return data


def _around(traceparent: str) -> AbstractContextManager[None]:
    """Return what makes spans of the agent's own children of its rollout's, where the run has telemetry."""
    return within_trace(traceparent) if traceparent else NOTHING


def _unpickled(data: bytes) -> Actor:
    actor: Actor = pickle.loads(data)
    return actor


def _plain(fault: RolloutFault) -> RolloutFault:
    """Return a fault without an agent's own class."""
    kind = AgentFailure if isinstance(fault, AgentFailure) else ProviderError
    return kind(str(fault), fault.code, frames=fault.frames, answer=fault.answer, latency_ms=fault.latency_ms)
