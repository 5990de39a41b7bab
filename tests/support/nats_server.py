"""A NATS server with JetStream, on a free port of the loopback and a folder of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.tools import require_tool

_READY_S = 100.0


class NatsServer:
    """Starts, stops, kills and starts again on the same port and folder."""

    def __init__(self, folder: Path, *options: str, jetstream: bool = True) -> None:
        store = ("-js", "-sd", str(folder / "store")) if jetstream else ()
        self.folder, self._options = folder, (*store, *options)
        self._program = require_tool("nats-server")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it listens."""
        log = self.folder / "server.log"
        address = ("-a", "127.0.0.1", "-p", str(self.port))
        self._process = subprocess.Popen(
            [self._program, *address, "-l", str(log), *self._options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            assert self._process.poll() is None, log.read_text() if log.exists() else "no log"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as link:
                if link.recv(4) == b"INFO" and "Server is ready" in log.read_text():
                    return
            time.sleep(0.01)
        raise AssertionError("nats-server does not listen")

    def kill(self) -> None:
        """End at once, as kill -9 does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self, stopped: bool) -> None:
        """Stop the process, or let it go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP if stopped else signal.SIGCONT)
        if stopped:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def close(self) -> None:
        """End."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
