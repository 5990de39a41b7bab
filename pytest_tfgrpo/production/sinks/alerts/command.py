"""The command that gets alerts, as a process."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias, cast

CallCommand: TypeAlias = Callable[[bytes], str]
"""Runs a program with data on its standard input; returns why it failed, or an empty text."""
TIMEOUT_S = 10.0
_SHOWN = 300
"""Bytes of what it wrote to its standard error last; no more is kept, however much it writes."""
_AT_ONCE = 1 << 16
"""Bytes that a pipe holds."""
_LOOK_S = 0.1
"""How often to look whether it has ended, while a child of it keeps its standard error open."""


class CommandProcess:
    """Runs programs in a folder, each in a process group of its own; bound to one, a `CallCommand`."""

    def __init__(self, folder: Path, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._folder, self._environ, self._timeout_s = folder, dict(environ), timeout_s

    def __call__(self, command: Sequence[str], data: bytes) -> str:
        try:
            process = subprocess.Popen(
                command,
                bufsize=0,
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"it does not start: {error}"
        stdin, stderr = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stderr)
        until = time.monotonic() + self._timeout_s
        try:
            said = _spoken(process, stdin, stderr, data, until)
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"it took longer than {self._timeout_s:g} s, and was ended"
        finally:
            stdin.close()
            stderr.close()
        if not process.returncode:
            return ""
        text = said.decode(errors="replace").strip()
        return f"it ended with code {process.returncode}" + (f": {text}" if text else "")


def _spoken(
    process: subprocess.Popen[bytes], stdin: IO[bytes], stderr: IO[bytes], data: bytes, until: float
) -> bytes:
    """Write data to a process, and return what it wrote last, once it has ended or the time is over."""
    said = b""
    with selectors.DefaultSelector() as open_ends:
        for file, event in ((stdin, selectors.EVENT_WRITE), (stderr, selectors.EVENT_READ)):
            os.set_blocking(file.fileno(), False)
            open_ends.register(file, event)
        ended = False
        while not ended and open_ends.get_map() and (left_s := until - time.monotonic()) > 0:
            ended = process.poll() is not None
            for key, _ in open_ends.select(0 if ended else min(left_s, _LOOK_S)):
                if key.fd == stderr.fileno():
                    chunk = os.read(key.fd, _AT_ONCE)
                    said, done = (said + chunk)[-_SHOWN:], not chunk
                else:
                    data = _rest(key.fd, data)
                    done = not data
                if done:
                    open_ends.unregister(key.fileobj)
                    if key.fileobj is stdin:
                        stdin.close()
    return said


def _rest(fd: int, data: bytes) -> bytes:
    """Write some data, and return what is left: nothing once nobody reads any more."""
    try:
        return data[os.write(fd, data[:_AT_ONCE]) :]
    except BrokenPipeError:
        return b""
