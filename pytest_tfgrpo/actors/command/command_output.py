"""The output of a command actor: what the program printed, and how it ended."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.actors.command.running_program import RunningProgram
from pytest_tfgrpo.actors.output import read_trajectory
from pytest_tfgrpo.core.errors import AgentFailure, RolloutFault
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.texts.text import STDERR
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import ActorCall

if TYPE_CHECKING:
    from pytest_tfgrpo.actors.events.registry import Reader

SpanFrames: TypeAlias = Callable[[], tuple[Frame, ...]]
UNTOLD = frozenset({"garbage", "no_answer", "oversize"})
"""Failures of the output alone: with a bad exit status they are a crash."""


def trajectory_of(
    running: RunningProgram, read: Reader, call: ActorCall, elapsed_ms: float, spans: SpanFrames = tuple
) -> Trajectory:
    """Return what the process answered; raises AgentFailure or ProviderError.

    `spans` returns the frames of a program that printed none.
    """
    stdout, status, limit = bytes(running.stdout), running.exit_code, call.answer_max_bytes
    if running.overflowed:
        message = f"the program printed more than {running.stdout_max_bytes} bytes"
        raise AgentFailure(message, "oversize", frames=frames_in(read, stdout, limit))
    try:
        trajectory = checked(read(stdout), limit, elapsed_ms, spans)
    except RolloutFault as fault:
        if not isinstance(fault, AgentFailure) and fault.code != "spawn":
            raise
        if status != 0 and fault.code in UNTOLD:
            raise crash_of(running, fault.frames) from None
        raise type(fault)(str(fault) + tail_of(running.stderr), fault.code, frames=fault.frames) from None
    if status != 0:
        raise crash_of(running, trajectory.frames)
    return trajectory


def checked(
    value: str | dict[str, Json], limit: int, elapsed_ms: float, spans: SpanFrames = tuple
) -> Trajectory:
    """Return the trajectory of a program."""
    return read_trajectory(value, answer_max_bytes=limit, elapsed_ms=elapsed_ms, model="command", spans=spans)


def crash_of(running: RunningProgram, frames: tuple[Frame, ...]) -> AgentFailure:
    """Return the failure of a program that ended badly."""
    return AgentFailure(
        f"the program {_ending(running.exit_code)}{tail_of(running.stderr)}", "crash", frames=frames
    )


def frames_in(read: Reader, stdout: bytes, limit: int) -> tuple[Frame, ...]:
    """Return the calls in an unusable output, since they cost money."""
    try:
        return checked(read(stdout), limit, 0.0).frames
    except RolloutFault as fault:
        return fault.frames


def _ending(status: int | None) -> str:
    if status is None:
        return "was lost: the process that watched it was killed"
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def tail_of(stderr: bytes) -> str:
    """Return the end of what a program printed as errors, to follow a message."""
    text = stderr.decode("utf-8", "replace").strip()
    return f"; {STDERR} {text}" if text else ""
