"""Answers of git: what one of its processes writes, read while it works."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Callable, Iterable, Sequence

PIPE = 1 << 20
"""Bytes that a git process may be ahead of its reader, where the system lets it."""


class GitAnswers:
    """What a process of git writes."""

    def __init__(self, process: subprocess.Popen[bytes], running: set[GitAnswers]) -> None:
        """`running` holds it until it has ended."""
        assert process.stdout is not None
        self.output = process.stdout
        self._process = process
        self._running = running
        running.add(self)
        with contextlib.suppress(OSError, AttributeError):  # a user may have no more large pipes
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, PIPE)

    def end(self, *, complete: bool = False) -> bool:
        """Close it, and end the process unless its output is `complete`; return whether that failed."""
        self._running.discard(self)
        if not complete:
            self._process.kill()
        self.output.close()
        return self._process.wait() != 0


AskGit = Callable[[Sequence[str], Iterable[str]], GitAnswers]
"""Starts git with arguments and lines to answer."""
