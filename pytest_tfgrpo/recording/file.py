"""The file of a recording: indexed when opened, parsed on use, replaced whole when written."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.files import open_plain, write_atomic
from pytest_tfgrpo.recording.entries import RecordingEntry, RecordingKey
from pytest_tfgrpo.recording.lines import Header, Line, decode, decode_header, encode_header, key_in

MAX_LINE = 64 << 20
"""Bytes of a line; a rollout that takes more is not recorded."""
REDACTED = re.compile(rb',"redacted":\d+,"crc":"[0-9a-f]{8}"\}$')
"""How the line of an entry ends that a secret was taken out of."""


class Recording:
    """The entries of one file by key, each parsed on first use."""

    def __init__(self, path: Path, header: Header | None, lines: dict[RecordingKey, Line]) -> None:
        """`header` is None for a file that holds nothing yet."""
        self.path = path
        self.header = header
        self.lines = lines
        self._by_scenario: dict[tuple[str, str], list[RecordingKey]] = {}
        self._subjects: dict[str, str] | None = None

    @classmethod
    def open(cls, path: Path) -> Recording:
        """Read a file; raises RecordingError naming file and line. A missing file holds nothing."""
        numbered = lines_of(path)
        first = next(numbered, None)
        if first is None:
            return cls(path, None, {})
        with naming(path, first.number):
            header = decode_header(first.text)
        lines: dict[RecordingKey, Line] = {}
        for line in numbered:
            with naming(path, line.number):
                key = key_in(line.text)
                if key in lines:
                    raise ValueError(f"the same entry is on line {lines[key].number}; remove one of them")
            lines[key] = line
        return cls(path, header, lines)

    def entry(self, key: RecordingKey) -> RecordingEntry | None:
        """Return an entry, None when there is none; raises RecordingError when its line is damaged."""
        line = self.lines.get(key)
        if line is None:
            return None
        with naming(self.path, line.number):
            return decode(line.text)

    def subject_of(self, fingerprint: str) -> str:
        """Return the scenario that a model call is filed under; empty when it is about none."""
        if self._subjects is None:
            self._subjects = {asked: scenario for scenario, kind, asked, _ in self.lines if kind == "call"}
        return self._subjects.get(fingerprint, "")

    def about(self, scenario: str, kind: str) -> Iterator[RecordingEntry]:
        """Yield the entries of a scenario that can be read."""
        if not self._by_scenario:
            for key in self.lines:
                self._by_scenario.setdefault(key[:2], []).append(key)
        for key in self._by_scenario.get((scenario, kind), ()):
            found = self.entry(key)
            if found is not None:
                yield found


@contextmanager
def naming(path: Path, number: int) -> Iterator[None]:
    """Turn a ValueError into a RecordingError that names file and line."""
    try:
        yield
    except RecordingError:
        raise
    except ValueError as error:
        raise RecordingError(f"{path}:{number}: {error}") from error


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file, of a missing one none; raises RecordingError on a line too long or torn."""
    try:
        with open_plain(path) as file:
            number = 0
            while text := file.readline(MAX_LINE + 1):
                number += 1
                if not text.endswith(b"\n"):
                    what = (
                        f"the line has more than {MAX_LINE} bytes"
                        if len(text) > MAX_LINE
                        else "the last line is incomplete"
                    )
                    raise RecordingError(f"{path}:{number}: {what}; restore the file from version control")
                yield Line(number, text[:-1])
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordingError(f"cannot read the recording {path}: {error}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing a recording in the same folder; raises RecordingError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RecordingError(f"cannot write the recording {path}: {error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write(path: Path, header: Header, lines: dict[RecordingKey, bytes]) -> None:
    """Write a recording atomically, sorted; raises RecordingError. The folder is `locked`."""
    order = sorted(lines)
    header = replace(
        header,
        rollouts=sum(key[1] == "rollout" for key in order),
        calls=sum(key[1] == "call" for key in order),
        redacted=sum(REDACTED.search(line) is not None for line in lines.values()),
    )
    try:
        write_atomic(
            path, (line + b"\n" for line in chain([encode_header(header)], (lines[key] for key in order)))
        )
    except OSError as error:
        raise RecordingError(f"cannot write the recording {path}: {error}") from error
