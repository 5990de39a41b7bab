"""Processes of git that answer one request after another."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Callable
from typing import IO

PIPE = 1 << 20
"""Bytes that a process may be ahead of its reader, where the system lets it."""
CHUNK = 200
"""Requests sent at once: two chunks of them fit into any pipe, so that no write waits for a read."""

StartGit = Callable[[], subprocess.Popen[bytes]]


class GitProcess:
    """One process, started when it is first needed and again after it has ended."""

    def __init__(self, start: StartGit) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, text: bytes) -> None:
        """Write a request; with what was not answered yet, it must fit into a pipe."""
        stdin = self._running().stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended: the reader sees that
            stdin.write(text)
            stdin.flush()

    @property
    def output(self) -> IO[bytes]:
        """What it writes."""
        stdout = self._running().stdout
        assert stdout is not None
        return stdout

    def end(self) -> None:
        """End it, with answers that nobody has read."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            finish(process)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = self._start()
            with contextlib.suppress(OSError, AttributeError):  # a user may have no more large pipes
                fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, PIPE)
        return self._process


def finish(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a process, and wait for its end."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()
    process.wait()
