"""One attempt of an actor: whatever happens becomes an outcome, and says whose fault it was."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Failure, Frame, Status, Trajectory
from pytest_tfgrpo.harness.actors.protocol import Actor, ActorCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How an attempt ended, before any check."""

    status: Status
    answer: str = ""
    frames: tuple[Frame, ...] = ()
    failure: Failure | None = None
    latency_ms: float
    """Wall time of the actor's call."""


async def attempt(actor: Actor, call: ActorCall) -> Outcome:
    """Ask the actor once, within the call's time limit; never raises but for cancellation (design 4)."""
    started = time.perf_counter()

    def failed(status: Status, code: str, message: str) -> Outcome:
        return Outcome(
            status=status, failure=Failure(code=code, message=message), latency_ms=elapsed_ms(started)
        )

    limit = asyncio.timeout(call.timeout_s)
    try:
        async with limit:
            trajectory = await actor(call)
    except TimeoutError as error:
        if limit.expired():
            return failed("failed", "timeout", f"no answer within {call.timeout_s:g} s")
        return failed("failed", "crash", _describe(error))
    except AgentFailure as error:
        return failed("failed", error.code, str(error))
    except ProviderError as error:
        return failed("error", error.code, str(error))
    except Exception as error:  # noqa: BLE001 - a crashing agent is data
        return failed("failed", "crash", _describe(error))
    return _accept(trajectory, call, elapsed_ms(started))


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since `started`, a reading of ``time.perf_counter``."""
    return round((time.perf_counter() - started) * 1000, 3)


def _describe(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _accept(trajectory: object, call: ActorCall, latency_ms: float) -> Outcome:
    if not isinstance(trajectory, Trajectory) or not isinstance(trajectory.answer, str):
        message = f"the actor returned {type(trajectory).__name__}, not a trajectory with a text as answer"
        failure = Failure(code="garbage", message=message)
        return Outcome(status="failed", failure=failure, latency_ms=latency_ms)
    # A character has at most four bytes: short answers need no second look.
    if len(trajectory.answer) > call.answer_max_bytes // 4:
        size = len(trajectory.answer.encode("utf-8", "surrogatepass"))
        if size > call.answer_max_bytes:
            message = f"the answer has {size} bytes, more than {call.answer_max_bytes}"
            failure = Failure(code="oversize", message=message)
            return Outcome(status="failed", failure=failure, latency_ms=latency_ms)
    return Outcome(status="ok", answer=trajectory.answer, frames=trajectory.frames, latency_ms=latency_ms)
