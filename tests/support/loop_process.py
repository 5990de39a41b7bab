"""``tfgrpo loop serve`` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

PROGRAM = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(['loop', 'serve']))"


class Served:
    """The service in a process of its own, in the current folder."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.started = self._process.stdout.readline()
        self.url = self.started.split()[1].rstrip(",") if self.started else ""

    def post(self, path: str, body: str) -> dict[str, object]:
        request = urllib.request.Request(
            self.url + path, body.encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=100) as answer:
            found: dict[str, object] = json.load(answer)
            return found

    def stop(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        """Return what it printed since it started, and its errors."""
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        return self._process.communicate(timeout=100)

    @property
    def code(self) -> int:
        return self._process.wait(100)
