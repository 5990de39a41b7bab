"""Processes: programs that end with all their descendants, when their channel closes or this process dies."""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.sandbox.programs.supervisor import END, HEADER, RECORD, TERMINATE

SUPERVISOR = Path(__file__).with_name("supervisor.py")
END_S = 2.0
IDLE = 4
"""Minders kept without a program; where one program ends, the next one soon starts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A program to start, in a session of its own."""

    argv: Sequence[str]
    """A program without a slash is looked for on the PATH of `environment`."""
    folder: Path
    """Where it runs."""
    environment: Mapping[str, str]
    files: tuple[int, int, int]
    """Descriptors of its standard input, output and error."""
    loopback: bool = False
    """The program is bubblewrap, and its sandbox reaches servers on this machine's loopback."""
    apart: bool = False
    """The program is bubblewrap, and its sandbox learns nothing of another by files that both see."""


class Channel:
    """The connection to the supervisor of a program."""

    __slots__ = ("_parts", "_socket", "sandboxed")

    def __init__(self, connection: socket.socket, *, sandboxed: bool) -> None:
        """`sandboxed`: its programs are bubblewrap, for which it has left the kernel's keys of your login."""
        self._socket = connection
        self._parts = b""
        self.sandboxed = sandboxed

    def fileno(self) -> int:
        """Return the descriptor to wait on until `read` has something."""
        return self._socket.fileno()

    def send(self, request: bytes, files: Sequence[int]) -> None:
        """Have a program started; raises OSError when the supervisor is gone."""
        socket.send_fds(self._socket, [HEADER.pack(len(request))], files)
        self._socket.sendall(request)

    def read(self) -> tuple[str, int] | None:
        """Return the next report, None when the supervisor was killed; BlockingIOError if it must not wait.

        ``S`` with the process id: started; ``E`` with an errno: not started; ``X`` with the exit code,
        negative for a signal; ``G``: the program and all its descendants are gone.
        """
        while len(self._parts) < RECORD.size:
            try:
                part = self._socket.recv(RECORD.size - len(self._parts))
            except ConnectionResetError:
                return None
            if not part:
                return None
            self._parts += part
        kind, value = RECORD.unpack(self._parts)
        self._parts = b""
        return kind.decode(), value

    def terminate(self) -> None:
        """Send SIGTERM to the program's process group."""
        self._command(TERMINATE)

    def end(self) -> None:
        """Kill the program and its descendants."""
        self._command(END)

    def set_blocking(self, blocking: bool) -> None:
        """Choose whether `read` waits."""
        self._socket.setblocking(blocking)

    def close(self) -> None:
        """Forget the program, which dies with its descendants if `read` has not returned ``G``."""
        self._socket.close()

    def _command(self, code: int) -> None:
        with contextlib.suppress(OSError):
            self._socket.send(HEADER.pack(code))


class _ForkServer:
    """The process that forks supervisors, and those without a program; all end with this process."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.idle: list[Channel] = []
        """Of supervisors without a program."""
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def gone(self) -> bool:
        """Return whether the process was killed, or belongs to another one, of which this is a fork."""
        return self.owner != os.getpid() or self._process.poll() is not None

    def channel(self, *, sandboxed: bool) -> Channel:
        """Return the channel to a new supervisor; raises OSError when the process was killed just now."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"M"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return Channel(ours, sandboxed=sandboxed)

    def close(self) -> None:
        self._control.close()
        for channel in self.idle:
            channel.close()
        if self.owner == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)


_fork_server: _ForkServer | None = None
_changing = threading.RLock()


def start(launch: Start) -> Channel:
    """Start a program, whose first report says whether that worked; raises OSError.

    The descriptors of `launch` can be closed afterwards. Hand the channel to `finish` in the end.
    """
    request = marshal.dumps(
        {
            "argv": [os.fsencode(word) for word in launch.argv],
            "loopback": launch.loopback,
            "apart": launch.apart,
            "folder": os.fsencode(launch.folder),
            "environment": {os.fsencode(name): os.fsencode(v) for name, v in launch.environment.items()},
        }
    )
    while True:
        channel, fresh = _free(sandboxed=os.path.basename(launch.argv[0]) == "bwrap")  # noqa: PTH119
        try:
            channel.send(request, launch.files)
        except (BrokenPipeError, ConnectionResetError):  # somebody killed the supervisor
            channel.close()
            if fresh:
                raise
        else:
            return channel


def finish(channel: Channel, *, gone: bool) -> None:
    """Give a channel back; `gone` says that `read` has returned ``G``, so another program can use it."""
    with _changing:
        if gone and _fork_server and not _fork_server.gone() and len(_fork_server.idle) < IDLE:
            channel.set_blocking(True)
            _fork_server.idle.append(channel)
        else:
            channel.close()


def _free(*, sandboxed: bool) -> tuple[Channel, bool]:
    """Return the channel to a supervisor without a program, and whether it is new."""
    global _fork_server
    with _changing:
        if _fork_server is None or _fork_server.gone():
            close_fork_server()
            _fork_server = _ForkServer()
        for at in reversed(range(len(_fork_server.idle))):
            if _fork_server.idle[at].sandboxed == sandboxed:
                return _fork_server.idle.pop(at), False
        return _fork_server.channel(sandboxed=sandboxed), True


@atexit.register
def close_fork_server() -> None:
    """End the process that forks supervisors; the next program starts another."""
    global _fork_server
    with _changing:
        server, _fork_server = _fork_server, None
        if server is not None:
            server.close()
