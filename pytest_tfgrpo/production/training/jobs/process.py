"""The process of a job: one at a time in a folder, also when whoever started it is gone.

It holds a lock on a file there as long as it lives, by a descriptor that it inherits, and that nothing
inherits which it starts. Another file says who looks after it, once that is not whoever started it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

LOCK = "process.lock"
LOG = "output.log"
KEEPER = "process.keeper"
_GLANCES, _GLANCE_S = 10, 0.01
"""How often the lock is tried, as who only looks holds it for a moment, and the pause in between."""


class JobProcess(Protocol):
    """A process that was started, or found."""

    @property
    def code(self) -> int | None:
        """The exit code of one that ended; None where whoever started it is gone, so that nobody knows."""
        ...

    def ended(self) -> bool:
        """Return whether it is over."""
        ...

    def interrupt(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        ...

    def kill(self) -> None:
        """End it with all that it started, and wait until it is gone."""
        ...

    def is_taken(self) -> bool:
        """Return whether somebody else found it since, and looks after it."""
        ...


class StartProcess(Protocol):
    """Starts a process in a job's folder."""

    def __call__(self, command: Sequence[str], folder: Path, *, cwd: Path) -> JobProcess: ...


class ProcessStarter:
    """Starts real processes with an environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def __call__(self, command: Sequence[str], folder: Path, *, cwd: Path) -> JobProcess:
        """Start a command whose output goes to the folder's log; raises OSError, also where one runs."""
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(handle)
            os.ftruncate(handle, 0)
            (folder / KEEPER).unlink(missing_ok=True)
            with (folder / LOG).open("ab") as log:
                process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(handle,),
                    start_new_session=True,
                )
            os.pwrite(handle, str(process.pid).encode(), 0)
        finally:
            os.close(handle)
        return StartedProcess(process, folder)


class StartedProcess:
    """A child of this process."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder = process, folder

    @property
    def code(self) -> int | None:
        """See `JobProcess`."""
        return self._process.returncode

    def ended(self) -> bool:
        """See `JobProcess`."""
        return self._process.poll() is not None

    def interrupt(self) -> None:
        """See `JobProcess`."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """See `JobProcess`."""
        _signal(os.killpg, self._process.pid, signal.SIGKILL)
        self._process.wait()

    def is_taken(self) -> bool:
        """See `JobProcess`."""
        return bool(_keeper(self._folder))


class FoundProcess:
    """A process that another one started, which is gone or looks after it no more."""

    code = None

    def __init__(self, folder: Path) -> None:
        self._folder, self._name = folder, secrets.token_hex(8)
        (folder / KEEPER).write_text(self._name, "ascii")

    def ended(self) -> bool:
        """See `JobProcess`."""
        return not is_held(self._folder)

    def interrupt(self) -> None:
        """See `JobProcess`."""
        self._send(os.kill, signal.SIGINT)

    def kill(self) -> None:
        """See `JobProcess`; whoever took it up waits until it has ended."""
        self._send(os.killpg, signal.SIGKILL)

    def is_taken(self) -> bool:
        """See `JobProcess`."""
        return _keeper(self._folder) not in ("", self._name)

    def _send(self, send: SendSignal, number: signal.Signals) -> None:
        pid = (self._folder / LOCK).read_text()
        if pid and is_held(self._folder):
            _signal(send, int(pid), number)


class SendSignal(Protocol):
    """`os.kill` or `os.killpg`."""

    def __call__(self, pid: int, number: int, /) -> None: ...


def find_process(folder: Path) -> JobProcess | None:
    """Return the process that lives in a job's folder, to look after it; None if there is none."""
    return FoundProcess(folder) if is_held(folder) else None


def start_or_find(start: StartProcess, command: Sequence[str], folder: Path, *, cwd: Path) -> JobProcess:
    """Start a process, or return the one that another service started just now; raises OSError."""
    try:
        return start(command, folder, cwd=cwd)
    except BlockingIOError:
        found = find_process(folder)
        if found is None:
            raise
        return found


def _lock(handle: int) -> None:
    for left in reversed(range(_GLANCES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(_GLANCE_S)


def _keeper(folder: Path) -> str:
    """Return what names who found the process last; empty where nobody did since it was started."""
    try:
        return (folder / KEEPER).read_text("ascii")
    except FileNotFoundError:
        return ""


def is_left(process: JobProcess | None) -> bool:
    """Return whether nobody here needs to end a process: it is over, or in other hands."""
    return process is None or process.ended() or process.is_taken()


def is_held(folder: Path) -> bool:
    """Return whether a process lives in a job's folder."""
    try:
        with closing(os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC), "rb")) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _signal(send: SendSignal, pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        send(pid, number)
