"""A conversation: one rollout of several turns, within one time limit, with one session of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytest_tfgrpo.actors.output import without_thoughts
from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import (
    BUDGET,
    TIMEOUT,
    AgentFailure,
    BudgetError,
    ProviderError,
    RecordingError,
    describe,
)
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import Actor, ActorCall, Conversational, Session, User

SCRIPT = "script"
"""Name of the user that says what a scenario has."""
UNPLAYED = "user"
"""Reason code of a conversation whose user no model could play on."""


class ScriptedUser:
    """Says the turns of a scenario, whatever the agent answers."""

    def __init__(self, first: str, turns: Sequence[str]) -> None:
        """`first` is the first message with the data of the task."""
        self._left: Iterator[str] = iter((first, *turns[1:]))

    async def reply(self, answer: str | None) -> Frame | None:
        """Return the next message; None after the last one."""
        said = next(self._left, None)
        return None if said is None else user_frame(SCRIPT, said, answer)


def user_frame(name: str, said: str, answer: str | None) -> Frame:
    """Return the frame of a message of the user, which replies to `answer`; it costs the agent nothing."""
    return Frame(kind=USER, name=name, input=answer, output=said, started_at=utc_now())


@dataclass(slots=True)
class _Talk:
    """What was said so far."""

    call: ActorCall
    frames: list[Frame] = field(default_factory=list)
    extra: dict[str, Json] = field(default_factory=dict)
    answer: str | None = None
    turn: int = 0
    size: int = 0
    """Bytes of all answers."""

    def failed(self, message: str, code: str) -> AgentFailure:
        return AgentFailure(message, code, frames=tuple(self.frames))

    def hear(self, trajectory: object) -> str:
        """Take the agent's answer to the last message; raises AgentFailure where it is none."""
        if (
            not isinstance(trajectory, Trajectory)
            or type(trajectory.answer) is not str
            or type(trajectory.frames) is not tuple
        ):
            what = f"{type(trajectory).__name__}, not a trajectory with a text as answer"
            raise self.failed(f"turn {self.turn}: the actor returned {what}", "garbage")
        if any(isinstance(frame, Frame) and frame.kind == USER for frame in trajectory.frames):
            raise self.failed(f"turn {self.turn}: the actor returned a frame of its user", "garbage")
        if self.call.part_thoughts:
            try:
                trajectory = without_thoughts(trajectory)
            except AgentFailure as error:
                self.frames += error.frames
                raise self.failed(f"turn {self.turn}: {error}", error.code) from None
        self.frames += trajectory.frames
        self.extra |= trajectory.extra
        self.size += len(trajectory.answer.encode("utf-8", "surrogatepass"))
        if self.size > self.call.answer_max_bytes:
            said = f"{self.size} bytes by turn {self.turn}, more than {self.call.answer_max_bytes}"
            raise self.failed(f"the answers have {said}", "oversize")
        self.answer = trajectory.answer
        return self.answer


async def converse(actor: Conversational, call: ActorCall, user: User) -> Trajectory:
    """Return a whole conversation: all frames, those of the user included, and the last answer.

    Raises AgentFailure and ProviderError with what was said until then.
    """
    talk = _Talk(call)
    session = actor.open_session(call)
    try:
        while (said := await _reply(user, talk)) is not None:
            talk.frames.append(said)
            talk.turn += 1
            heard = call.prompt.user if talk.turn == 1 else said.output  # a pack may open the first message
            talk.hear(await _answer(session, heard, talk))
    finally:
        await session.aclose()
    return Trajectory(answer=talk.answer or "", frames=tuple(talk.frames), extra=talk.extra)


async def repeat(actor: Actor, call: ActorCall, user: User | None) -> Trajectory:
    """Return what an actor answers at once, as a recording does a conversation, whose user is heard again.

    Then its calls are on file and counted. Raises ProviderError where it says something else.
    """
    try:
        made = await actor(call)
    except (AgentFailure, ProviderError) as error:
        if user is not None and type(error.frames) is tuple:
            with suppress(ProviderError, RecordingError):  # the fault of then stands
                last = error.answer if error.code == UNPLAYED else None
                await _hear_again(user, error.frames, last)
        raise
    if user is not None and isinstance(made, Trajectory):
        try:
            await _hear_again(user, made.frames, made.answer)
        except RecordingError as error:
            raise ProviderError(str(error), "replay_miss") from error
    return made


async def _hear_again(user: User, frames: Sequence[Frame], last: str | None) -> None:
    """Let the user say what it said, and reply to the `last` answer, where it was given that."""
    said = [frame for frame in frames if isinstance(frame, Frame) and frame.kind == USER]
    for frame in said:
        heard = await user.reply(frame.input if isinstance(frame.input, str) else None)
        if heard is None or heard.output != frame.output:
            raise ProviderError("the recording has another user; record this run again", "replay_miss")
    if said and last is not None:
        await user.reply(last)


async def _reply(user: User, talk: _Talk) -> Frame | None:
    """Return what the user says next; whatever keeps it from that is no fault of the agent."""
    try:
        return await user.reply(talk.answer)
    except ProviderError as error:
        frames, answer = tuple(talk.frames), talk.answer or ""
        raise ProviderError(str(error), error.code, frames=frames, answer=answer) from error
    except BudgetError as error:
        raise ProviderError(str(error), BUDGET, frames=tuple(talk.frames)) from error
    except asyncio.CancelledError as error:
        message = f"the user did not reply to the answer of turn {talk.turn} in time"
        raise ProviderError(message, TIMEOUT, frames=tuple(talk.frames)) from error


async def _answer(session: Session, message: str, talk: _Talk) -> Trajectory:
    """Return the agent's answer to a message; its fault has the frames of the turns before, too."""
    try:
        return await session.answer(message)
    except (AgentFailure, ProviderError) as error:
        own = error.frames if type(error.frames) is tuple else ()
        if any(isinstance(frame, Frame) and frame.kind == USER for frame in own):  # it is not its user
            own = ()
        fault = AgentFailure if isinstance(error, AgentFailure) else ProviderError
        where = f"turn {talk.turn}: {error}" if talk.turn > 1 else str(error)
        raise fault(where, error.code, frames=(*talk.frames, *own), answer=error.answer) from error
    except BudgetError as error:
        raise ProviderError(str(error), BUDGET, frames=tuple(talk.frames)) from error
    except asyncio.CancelledError as error:
        limit = f"no answer to turn {talk.turn} within the {talk.call.timeout_s:g} s of the conversation"
        raise talk.failed(limit, TIMEOUT) from error
    except BaseException as error:  # a crashing agent is data, and what it did before is paid for
        raise talk.failed(f"turn {talk.turn}: {describe(error)}", "crash") from error
