"""The output of one running program: stdout up to a cap, the tail of stderr, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.sandbox.programs.processes import Channel, Start, finish, start

STDERR_TAIL_BYTES = 2000
LINGER_S = 0.5
"""How long to read on when the program has ended but something else holds its output open."""
TERM_GRACE_S = 0.5
"""How long a program may take to end by itself after SIGTERM."""
REAP_S = 5.0
CHUNK_BYTES = 65_536


class RunningProgram:
    """One program, from its start to the end of all its descendants."""

    def __init__(self, stdout_max_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.stdout = bytearray()
        self.stderr = b""
        self.stdout_max_bytes = stdout_max_bytes
        self.exit_code: int | None = None
        self._lost = False
        self._started: asyncio.Future[OSError | None] = self._loop.create_future()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._overflowing: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._news: asyncio.Future[None] | None = None
        self._channel: Channel | None = None
        self._open: dict[int, Callable[[bytes], None]] = {}

    @property
    def overflowed(self) -> bool:
        """Whether the program printed more than `stdout_max_bytes`."""
        return self._overflowing.done()

    async def start(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stdin: int,
        *,
        loopback: bool = False,
    ) -> None:
        """Start the program; raises OSError when that does not work."""
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        self._open = {out: self._on_stdout, err: self._on_stderr}
        try:
            self._channel = start(
                Start(
                    argv=argv,
                    folder=folder,
                    environment=environment,
                    files=(stdin, stdout, stderr),
                    loopback=loopback,
                )
            )
        finally:
            os.close(stdout)
            os.close(stderr)
        self._channel.set_blocking(False)
        self._loop.add_reader(self._channel.fileno(), self._on_report, self._channel)
        for file in self._open:
            os.set_blocking(file, False)
            self._loop.add_reader(file, self._on_output, file)
        if (error := await self._started) is not None:
            raise error

    async def finished(self, limit_s: float | None) -> bool:
        """Return True when the program has ended or printed too much, False after `limit_s`.

        A program that only closes its output goes on: many close it last, some before they write files.
        """
        ends = [self._exited, self._overflowing]
        done, _ = await asyncio.wait(ends, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if done and not self.overflowed:
            await asyncio.wait([self._closed], timeout=LINGER_S)
        return bool(done)

    async def more(self, seen: int) -> bool:
        """Return True once there are more than `seen` bytes of output, False where none will come."""
        while len(self.stdout) <= seen and not self.overflowed:
            if self._closed.done():
                await asyncio.wait([self._exited], timeout=LINGER_S)
                return False
            self._news = self._loop.create_future()
            waits = [self._news, self._overflowing, self._closed, self._exited]
            late = LINGER_S if self._exited.done() else None
            done, _ = await asyncio.wait(
                waits[:3] if late else waits, timeout=late, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return False
        return not self.overflowed

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes of its output, which are read."""
        del self.stdout[:count]

    async def end(self) -> None:
        """End the program and its descendants: SIGTERM, a moment's grace, SIGKILL; wait for that."""
        channel, self._channel = self._channel, None  # it is given back once
        try:
            if channel is not None:
                if not self._exited.done():
                    channel.terminate()
                    await asyncio.wait([self._exited], timeout=TERM_GRACE_S)
                channel.end()
                await asyncio.wait([self._gone], timeout=REAP_S)
        finally:
            for file in tuple(self._open):
                self._close(file)
            if channel is not None:
                self._loop.remove_reader(channel.fileno())
                finish(channel, gone=self._gone.done() and not self._lost)

    def _on_report(self, channel: Channel) -> None:
        try:
            report = channel.read()
        except BlockingIOError:
            return
        match report:
            case ("S", _):
                self._answer(None)
            case ("E", number):
                self._answer(OSError(number, os.strerror(number)))
            case ("X", code):
                self.exit_code = code
                _settle(self._exited)
            case ("G", _):
                _settle(self._gone)
            case _:
                self._lost = True
                self._loop.remove_reader(channel.fileno())
                self._answer(OSError(errno.ECHILD, "the process that starts programs was killed"))
                for future in (self._exited, self._gone):
                    _settle(future)

    def _answer(self, error: OSError | None) -> None:
        if not self._started.done():
            self._started.set_result(error)

    def _on_output(self, file: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(file, CHUNK_BYTES)
            self._open[file](data)
            if not data:
                self._close(file)

    def _on_stdout(self, data: bytes) -> None:
        if not self.overflowed:
            self.stdout += data
            if len(self.stdout) > self.stdout_max_bytes:
                _settle(self._overflowing)
            if self._news is not None:
                _settle(self._news)

    def _on_stderr(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-STDERR_TAIL_BYTES:]

    def _close(self, file: int) -> None:
        self._loop.remove_reader(file)
        os.close(file)
        del self._open[file]
        if not self._open:
            _settle(self._closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def write_all(file: int, data: bytes) -> None:
    """Write to a program's input as fast as it reads it; that it has ended is seen by its output."""
    loop, left = asyncio.get_running_loop(), memoryview(data)
    while left:
        try:
            left = left[os.write(file, left) :]
        except BlockingIOError:
            room = asyncio.Event()
            loop.add_writer(file, room.set)
            try:
                await room.wait()
            finally:
                loop.remove_writer(file)
        except BrokenPipeError:
            return
