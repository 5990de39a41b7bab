"""The process of a server: a line of JSON for each message, in and out."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.actors.command.running_program import RunningProgram, write_all
from pytest_tfgrpo.core.texts.text import line

MESSAGE_MAX_BYTES = 16_000_000
NOISE_MAX = 1000
"""Lines that are no messages, such as a greeting, of which a server may print so many."""
CLOSE_S = 1.0
"""How long a server may go on once its input has ended."""
SETTLE_S = 0.3
SHOWN = 300


class ServerProgram:
    """One process, which ends with all its descendants."""

    def __init__(self) -> None:
        self._running = RunningProgram(MESSAGE_MAX_BYTES)
        self._stdin = -1
        self._started = False
        self._noise = 0
        self._sample = ""

    async def start(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start it; raises OSError."""
        read, self._stdin = os.pipe()
        try:
            os.set_blocking(self._stdin, False)
            await self._running.start(argv, folder, environment, read)
        finally:
            os.close(read)
        self._started = True

    @property
    def ended(self) -> bool:
        """Whether the process has ended, or printed too much to go on with."""
        return self._running.exit_code is not None or self._running.overflowed

    async def settle(self) -> None:
        """Wait a moment for the end of a process that no longer answers, so that `trouble` knows of it."""
        if self._started:
            await self._running.finished(SETTLE_S)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what it prints, line by line, until it ends or `trouble` says what is wrong."""
        running, at = self._running, 0
        while not running.overflowed and self._noise <= NOISE_MAX:
            end = running.stdout.find(b"\n", at)
            if end < 0:
                at = len(running.stdout)
                if not await running.more(at):
                    return
                continue
            found, at = bytes(running.stdout[:end]), 0
            running.drop(end + 1)
            if found.strip():
                yield found

    def ignore(self, text: bytes) -> None:
        """Take note of a line that is no message."""
        self._noise += 1
        self._sample = self._sample or line(text[:SHOWN].decode("utf-8", "replace"), SHOWN)

    async def send(self, data: bytes) -> None:
        """Write a message."""
        if self._stdin >= 0:
            await write_all(self._stdin, data + b"\n")

    @property
    def trouble(self) -> str:
        """What it did besides answering: how it ended, what it printed that is no message; or nothing."""
        running, found = self._running, []
        if running.overflowed:
            found.append(f"it printed more than {MESSAGE_MAX_BYTES} bytes at once")
        elif running.exit_code is not None:
            code = running.exit_code
            how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
            found.append(f"its process ended {how}")
        if self._noise:
            found.append(f"it printed what is no message on stdout: {self._sample!r}")
        if said := running.stderr.decode("utf-8", "replace").strip():
            found.append(f"stderr: {line(said[-SHOWN:], SHOWN)}")
        return "; ".join(found)

    async def end(self, close_s: float = CLOSE_S) -> None:
        """End its input, and after `close_s` at most the process with all its descendants."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        try:
            if self._started and close_s > 0:
                await self._running.finished(close_s)
        finally:
            await self._running.end()
