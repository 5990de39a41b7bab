"""One attempt of an actor: every ending becomes a result that says whose fault it was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.actors.output import TOKENS_MAX, is_amount, is_usage, limited, without_thoughts
from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import (
    BUDGET,
    TIMEOUT,
    AgentFailure,
    BudgetError,
    ProviderError,
    RolloutFault,
    describe,
)
from pytest_tfgrpo.core.python.clock import elapsed_ms, utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Failure, Frame, Phase, Rollout, Status, Trajectory
from pytest_tfgrpo.core.sampled import is_plain, reported
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.conversations.conversation import converse, repeat
from pytest_tfgrpo.llm.limits.queueing import current_ticket
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import Actor, ActorCall, User, as_conversational

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.prompts import RenderedPrompt

CANCEL_GRACE_S = 10.0
"""How long an actor may take to clean up after it was cancelled; then it is left to itself."""
NOTHING: AbstractContextManager[None] = nullcontext()

AttemptFault: TypeAlias = tuple[Status, RolloutFault]
"""Status of an attempt without an answer, and why there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptResult:
    """How an attempt ended, before any check."""

    status: Status
    answer: str = ""
    frames: tuple[Frame, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    decoy: str | None = None
    failure: Failure | None = None
    started_at: str
    """When the actor was called, ISO 8601 in UTC."""
    latency_ms: float
    """Wall time of the actor's call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One rollout to be made."""

    phase: Phase
    question: RenderedPrompt
    index: int
    rollout_id: str
    group_id: str
    call: ActorCall
    pair: tuple[str, ...] = ()
    """Ids of the rollouts that run beside it, as its other sides; empty where it stands alone."""
    actor: Actor | None = None
    """The agent that runs in place of the run's actor."""
    user: Callable[[], User] | None = None
    """Opens the user of its conversation; None: there is one question."""
    within: AbstractContextManager[None] = NOTHING
    """Open during the call, in the task of the agent."""


def rollout_of(slot: Slot, outcome: AttemptResult, run_id: str) -> Rollout:
    """Return the rollout that an attempt is."""
    made = Trajectory(answer=outcome.answer, frames=outcome.frames)
    return Rollout(
        rollout_id=slot.rollout_id,
        group_id=slot.group_id,
        run_id=run_id,
        scenario_id=slot.question.scenario.id,
        epoch=slot.phase.epoch,
        mode=slot.phase.mode,
        index=slot.index,
        seed=slot.call.seed,
        temperature=slot.call.temperature,
        status=outcome.status,
        answer=outcome.answer,
        frames=outcome.frames,
        extra=outcome.extra,
        decoy=outcome.decoy,
        started_at=outcome.started_at,
        failure=outcome.failure,
        tokens=made.tokens,
        cost_usd=made.cost_usd,
        latency_ms=outcome.latency_ms,
        experiences=slot.question.experiences,
        left_out=slot.question.left_out,
        tossed=slot.question.tossed,
        prompt_stamp=slot.question.prompt_stamp,
    )


async def attempt(
    actor: Actor,
    call: ActorCall,
    abandon: Callable[[AttemptResult], None] | None = None,
    around: AbstractContextManager[None] = NOTHING,
    user: User | None = None,
) -> AttemptResult:
    """Call the actor once, within the time limit; raises nothing but cancellation.

    With a `user` it holds a conversation; the time limit is that of all its turns.

    `abandon` receives what a cancelled attempt came to, where known; `around` is open during the call.
    Waiting for room in the budget counts neither for the limit nor as latency.
    The call is a task of its own: an agent that cancels itself, or will not be cancelled, does so alone.
    """
    if call.workspace.archive is not None and not call.workspace.made:
        try:  # thousands of files, which are neither the agent's time nor the event loop's
            await asyncio.to_thread(call.workspace.make)
        except ProviderError as error:
            return _outcome(("error", error), utc_now(), 0.0)
    started_at, started, ticket = utc_now(), time.perf_counter(), current_ticket()
    waited_s = ticket.waited_s
    loop = asyncio.get_running_loop()
    over: asyncio.Future[bool] = loop.create_future()
    task = loop.create_task(ask_once(actor, call, around, user))
    task.add_done_callback(lambda _: _settle(over, True))
    timer = ticket.timer(call.timeout_s, lambda: _settle(over, False))
    try:  # what asyncio.wait() does, at half its cost
        in_time = await over
    except asyncio.CancelledError:
        await _stop(task)
        if abandon is not None and task.done() and not task.cancelled():
            abandon(_outcome(task.result(), started_at, elapsed_ms(started + ticket.waited_s - waited_s)))
        raise
    finally:
        timer.cancel()
        await _stop(task)
    if not in_time:
        answer: Trajectory | AttemptFault = _late(task, call)
    elif task.cancelled():
        answer = _failed("the agent cancelled its own task", "crash")
    else:
        answer = task.result()
    return _outcome(answer, started_at, elapsed_ms(started + ticket.waited_s - waited_s))


async def _stop(task: asyncio.Task[Trajectory | AttemptFault]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_GRACE_S)


def _outcome(answer: Trajectory | AttemptFault, started_at: str, elapsed: float) -> AttemptResult:
    if isinstance(answer, Trajectory):
        latency_ms = elapsed if answer.latency_ms is None else answer.latency_ms
        return AttemptResult(
            status="ok",
            answer=answer.answer,
            frames=_fit(answer.frames),
            extra=answer.extra,
            decoy=answer.decoy,
            started_at=started_at,
            latency_ms=latency_ms,
        )
    status, fault = answer
    return AttemptResult(
        status=status,
        answer=fault.answer,
        frames=_fit(fault.frames),
        failure=Failure(code=fault.code, message=redact(str(fault))),
        started_at=started_at,
        latency_ms=elapsed if fault.latency_ms is None else fault.latency_ms,
    )


def _fit(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return frames without secrets in their names, which every table shows, and with sound numbers."""
    if all(_name(frame.name) == frame.name and frame.sampled is None for frame in frames):
        return frames
    return tuple(
        replace(
            frame,
            name=_name(frame.name),
            sampled=None if frame.sampled is None else reported(frame.sampled),
        )
        for frame in frames
    )


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return redact(name)


def _failed(message: str, code: str) -> AttemptFault:
    return "failed", AgentFailure(message, code)


def _late(task: asyncio.Task[Trajectory | AttemptFault], call: ActorCall) -> AttemptFault:
    """Return why nothing came in time: the actor's own word for it, where it had one when it was stopped."""
    told = task.result() if task.done() and not task.cancelled() else None
    if isinstance(told, tuple) and told[1].code == TIMEOUT:
        return told
    return _failed(f"no answer within {call.timeout_s:g} s", TIMEOUT)


def _settle(over: asyncio.Future[bool], in_time: bool) -> None:
    if not over.done():
        over.set_result(in_time)


async def ask_once(
    actor: Actor, call: ActorCall, around: AbstractContextManager[None], user: User | None
) -> Trajectory | AttemptFault:
    """Return a sound trajectory of one call, or whose fault it is that there is none.

    Nothing may be raised: KeyboardInterrupt and SystemExit of an agent would end the event loop.
    """
    try:
        with around:  # in here, where the timer's context does not keep it
            talker = None if user is None else as_conversational(actor)  # none in a replay, which has it all
            if user is None or talker is None:
                made = await repeat(actor, call, user)
                if call.part_thoughts and isinstance(made, Trajectory):
                    made = without_thoughts(_sound(made, call, talks=user is not None))
            else:
                made = await converse(talker, call, user)
            return _sound(made, call, talks=user is not None)
    except AgentFailure as error:
        sound = _is_sound(error, talks=user is not None)
        return "failed", error if sound else AgentFailure(str(error), error.code)
    except ProviderError as error:
        sound = _is_sound(error, talks=user is not None)
        return "error", error if sound else ProviderError(str(error), error.code)
    except BudgetError as error:
        return "error", ProviderError(str(error), BUDGET)
    except BaseException as error:  # noqa: BLE001 - a crashing agent is data
        return _failed(describe(error), "crash")


def _sound(trajectory: object, call: ActorCall, *, talks: bool) -> Trajectory:
    """Return what an actor returned; raises AgentFailure unless it is a trajectory through and through."""
    if not isinstance(trajectory, Trajectory) or type(trajectory.answer) is not str:
        raise AgentFailure(
            f"the actor returned {type(trajectory).__name__}, not a trajectory with a text as answer",
            "garbage",
        )
    is_frame = _is_frame_of_talk if talks else _is_frame
    if type(trajectory.frames) is not tuple or not all(map(is_frame, trajectory.frames)):
        raise AgentFailure(
            "the actor returned invalid frames: each needs a kind, a name, an output, and tokens, latency_ms "
            f"and cost_usd between 0 and {TOKENS_MAX}",
            "garbage",
        )
    if not isinstance(trajectory.extra, Mapping):
        raise AgentFailure(f"the actor returned {trajectory.extra!r:.100} as extra", "garbage")
    if trajectory.decoy is not None and type(trajectory.decoy) is not str:
        raise AgentFailure(f"the actor returned {trajectory.decoy!r:.100} as decoy", "garbage")
    if not _is_latency(trajectory.latency_ms):
        raise AgentFailure(f"the latency must be between 0 and {TOKENS_MAX} ms", "garbage")
    # A character has at most four bytes: short answers need no second look.
    if len(trajectory.answer) > call.answer_max_bytes // 4:
        size = len(trajectory.answer.encode("utf-8", "surrogatepass"))
        if size > call.answer_max_bytes:
            raise AgentFailure(f"the answer has {size} bytes, more than {call.answer_max_bytes}", "oversize")
    return limited(trajectory)


def _is_sound(fault: RolloutFault, *, talks: bool) -> bool:
    """Return whether what a fault carries is fit for a rollout."""
    return (
        type(fault.answer) is str
        and type(fault.frames) is tuple
        and all(map(_is_frame_of_talk if talks else _is_frame, fault.frames))
        and _is_latency(fault.latency_ms)
    )


def _is_latency(value: object) -> bool:
    return value is None or is_amount(value)


def _is_frame(frame: object) -> bool:
    return isinstance(frame, Frame) and frame.kind in ("model", "tool") and _has_sound_fields(frame)


def _is_frame_of_talk(frame: object) -> bool:
    return isinstance(frame, Frame) and frame.kind in ("model", "tool", USER) and _has_sound_fields(frame)


def _has_sound_fields(frame: Frame) -> bool:
    return (
        type(frame.name) is str
        and type(frame.output) is str
        and (frame.error is None or type(frame.error) is str)
        and type(frame.tokens) is int
        and type(frame.finish) is str
        and type(frame.thoughts) is str
        and type(frame.inside) is int
        and isinstance(frame.extra, Mapping)
        and (frame.started_at is None or type(frame.started_at) is str)
        and (frame.usage is None or is_usage(frame.usage))
        and (frame.sampled is None or is_plain(frame.sampled))
        and is_amount(frame.tokens)
        and is_amount(frame.latency_ms)
        and is_amount(frame.cost_usd or 0)
    )
