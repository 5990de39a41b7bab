"""The command that gets alerts, as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

RunCommand: TypeAlias = Callable[[Sequence[str], bytes], str]
"""Runs a program with data on its standard input; returns why it failed, or an empty text."""
TIMEOUT_S = 10.0
_SHOWN = 300
"""Bytes of what it wrote to its standard error last."""


class CommandProcess:
    """Runs programs in a folder, each in a process group of its own; see `RunCommand`."""

    def __init__(self, folder: Path, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._folder, self._environ, self._timeout_s = folder, dict(environ), timeout_s

    def __call__(self, command: Sequence[str], data: bytes) -> str:
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self._folder,
                    env=self._environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                return f"it does not start: {error}"
            try:
                process.communicate(data, self._timeout_s)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if process.stdin is not None:
                    with suppress(OSError):
                        process.stdin.close()
                process.wait()
                return f"it took longer than {self._timeout_s:g} s, and was ended"
            if not process.returncode:
                return ""
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SHOWN))
            said = errors.read().decode(errors="replace").strip()
            return f"it ended with code {process.returncode}" + (f": {said}" if said else "")
