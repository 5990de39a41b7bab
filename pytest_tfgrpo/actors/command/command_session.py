"""A conversation with one process of a command: a line of JSON for each message, and lines in reply."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.actors.command.command_input import task_line
from pytest_tfgrpo.actors.command.command_output import checked, crash_of, frames_in, tail_of
from pytest_tfgrpo.actors.command.running_program import RunningProgram, write_all
from pytest_tfgrpo.actors.output import read_output, total_max_bytes
from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import ActorCall

CLOSE_S = 1.0
"""How long a program may go on once its input has ended, to write what it has to."""


class Starter(Protocol):
    """Starts the program of a command."""

    async def start(self, call: ActorCall, running: RunningProgram, stdin: int, workspace: Path) -> None:
        """Start it, with the file `stdin` as its input; raises ProviderError."""
        ...


class CommandSession:
    """Writes each message to the program's stdin, and reads its stdout up to the answer."""

    def __init__(self, starter: Starter, call: ActorCall) -> None:
        self._starter = starter
        self._call = call
        self._running: RunningProgram | None = None
        self._stdin = -1
        self._read = 0
        self._turn = 0

    async def answer(self, message: str) -> Trajectory:
        """Return the answer that the program prints; raises AgentFailure and ProviderError."""
        self._turn += 1
        began = time.perf_counter()
        if self._running is None:
            workspace = self._call.workspace.path.absolute()
            line = task_line(self._call, workspace, conversation=True)
            running = await self._begin(workspace)
        else:
            running = self._running
            self._refuse_early(running)
            line = json.dumps({"user": message}).encode("ascii") + b"\n"
        await write_all(self._stdin, line)
        at = self._read
        try:
            output = await self._reply(running)
            value = read_output(output)
            if isinstance(value, str):
                raise AgentFailure(_unfit(value), "garbage")
            elapsed_ms = round((time.perf_counter() - began) * 1000, 3)
            return checked(value, self._call.answer_max_bytes, elapsed_ms)
        except AgentFailure as failure:
            failure.frames = failure.frames or frames_in(
                read_output, bytes(running.stdout[at:]), self._call.answer_max_bytes
            )
            if failure.code == "crash":
                raise
            told = str(failure) + tail_of(running.stderr)
            raise AgentFailure(told, failure.code, frames=failure.frames) from None

    def _refuse_early(self, running: RunningProgram) -> None:
        """Raise AgentFailure where an answer is there before the message that it answers."""
        early = bytes(running.stdout[self._read :])
        if any(_is_answer(line) for line in early.splitlines()):
            told = early.strip()[:80].decode("utf-8", "replace")
            raise AgentFailure(
                f"the program printed an answer before it received message {self._turn}: {told!r}; in a "
                "conversation each answer follows its message",
                "garbage",
            )

    async def _begin(self, workspace: Path) -> RunningProgram:
        running = self._running = RunningProgram(total_max_bytes(self._call.answer_max_bytes))
        read, self._stdin = os.pipe()
        try:
            os.set_blocking(self._stdin, False)
            await self._starter.start(self._call, running, read, workspace)
        finally:
            os.close(read)
        return running

    async def _reply(self, running: RunningProgram) -> bytes:
        """Return the lines up to the next answer, or error; raises AgentFailure where there is none."""
        began = at = self._read
        while True:
            end = running.stdout.find(b"\n", at)
            if end < 0:
                at_end = not await running.more(len(running.stdout))
                if running.overflowed:
                    message = f"the program printed more than {running.stdout_max_bytes} bytes"
                    raise AgentFailure(message, "oversize")
                if not at_end:
                    continue
                end = len(running.stdout)
                if at == end:
                    raise self._ended(running)
            line = bytes(running.stdout[at:end])
            at = self._read = min(end + 1, len(running.stdout))
            if _is_last(line):
                return bytes(running.stdout[began:at])

    def _ended(self, running: RunningProgram) -> AgentFailure:
        """Return the failure of a program that ended before it answered."""
        if running.exit_code != 0:
            return crash_of(running, ())
        after = f" after turn {self._turn - 1}" if self._turn > 1 else ""
        return AgentFailure(
            f"the program ended{after} without an answer to turn {self._turn}; in a conversation it reads a "
            "line of JSON for each turn, until its input ends",
            "no_answer",
        )

    async def aclose(self) -> None:
        """End the input, and soon after the program with all its descendants."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        if self._running is not None:
            try:
                await self._running.finished(CLOSE_S)
            finally:
                await self._running.end()


def _is_answer(line: bytes) -> bool:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "answer" in data


def _is_last(line: bytes) -> bool:
    """Return whether a line ends a turn; one that is no JSON object raises AgentFailure."""
    if line.startswith(b"{") and b'"frame"' in line and b'"answer"' not in line and b'"error"' not in line:
        return False  # a frame, or else refused with all lines of its turn
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return False
    try:
        data: Json = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise AgentFailure(_unfit(text), "garbage")
    return "frame" not in data or "answer" in data


def _unfit(text: str) -> str:
    return f'in a conversation the program prints a line {{"answer": "..."}} for each turn, not {text[:80]!r}'
