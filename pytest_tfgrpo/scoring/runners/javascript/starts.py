"""Notes of which test began, by which one that hangs is found; tests could forge them, and gain nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path

from pytest_tfgrpo.sandbox.paths import open_untrusted

MAX_NOTES = 256 * 1024 * 1024
CHUNK = 1024 * 1024
MAX_OPEN = 10_000


class Starts:
    """Reads the notes while tests run."""

    def __init__(self, folder: Path, name: str, hang_s: float) -> None:
        self._folder = folder
        self._name = name
        self._hang_s = hang_s
        self._offset = 0
        self._rest = b""
        self._open: dict[str, dict[str, None]] = {}
        self._last: dict[str, float] = {}

    def hung(self) -> tuple[str, str] | None:
        """Return file and name of a test that runs too long, the one begun last; None if there is none."""
        self._read()
        now = time.monotonic()
        for file, tests in self._open.items():
            if tests and now - self._last[file] > self._hang_s:
                return file, next(reversed(tests))
        return None

    def _read(self) -> None:
        try:
            with open_untrusted(self._folder, self._name, MAX_NOTES) as notes:
                notes.seek(self._offset)
                data = notes.read(CHUNK)
        except (OSError, ValueError):
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._note(line)

    def _note(self, line: bytes) -> None:
        try:
            note = json.loads(line)
            kind, file, name = note["kind"], str(note["file"]), str(note["name"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        tests = self._open.setdefault(file, {})
        self._last[file] = time.monotonic()
        tests.pop(name, None)
        if kind == "start" and len(tests) < MAX_OPEN:
            tests[name] = None
