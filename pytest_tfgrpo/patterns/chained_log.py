"""A log in which each line holds the hash of one before it, so that no line is changed without a trace.

Two branches that each add a line may be merged line by line: both lines then hold the hash of the same one
before. What was cut off at the end is seen only against a head that was kept elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json

PREVIOUS, TIME = "previous", "time"
NOTHING = "0" * 64
"""Instead of a hash, in the first line."""


class ChainedLog:
    """A file of JSON lines; several processes may append."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Mapping[str, Json]) -> str:
        """Write an entry behind the last one and return its hash; raises StoreError, also on a broken log."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked() as file:
                lines = file.read_lines()
                self._check(lines)
                value = {TIME: utc_now(), **entry, PREVIOUS: _hash(lines[-1]) if lines else NOTHING}
                line = json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True).encode()
                file.write_line(line)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}; make room") from error
        return _hash(line)

    def entries(self) -> list[dict[str, Json]]:
        """Return the entries, the oldest first; raises StoreError on a broken log."""
        try:
            data = read_plain(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror or error}") from error
        return self._check(_whole(data))

    def _check(self, lines: Sequence[bytes]) -> list[dict[str, Json]]:
        """Return the entries; raises StoreError at the first line that follows from none before it."""
        known, found = {NOTHING}, list[dict[str, Json]]()
        for number, line in enumerate(lines, 1):
            try:
                value = load_json(line)
            except ValueError:
                value = None
            if not isinstance(value, dict) or value.get(PREVIOUS) not in known:
                raise StoreError(
                    f"{self.path}, line {number}: it does not follow from a line before it: the log was "
                    "changed; put it back from git or a copy, nothing is added until then"
                )
            known = {*known, _hash(line)} - {NOTHING}
            found.append(value)
        return found

    @contextmanager
    def _locked(self) -> Iterator[_LogFile]:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield _LogFile(handle)
        finally:
            os.close(handle)


class _LogFile:
    """The file of a log while it is locked."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._end = 0

    def read_lines(self) -> list[bytes]:
        """Return the whole lines; a last one that was cut by a kill is written over."""
        data = os.pread(self._handle, os.fstat(self._handle).st_size, 0)
        self._end = data.rfind(b"\n") + 1
        return _whole(data)

    def write_line(self, line: bytes) -> None:
        """Write a line to disk, whole or not at all."""
        try:
            os.ftruncate(self._handle, self._end)
            written, data = 0, line + b"\n"
            while written < len(data):
                written += os.pwrite(self._handle, data[written:], self._end + written)
            os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, self._end)
            raise


def _whole(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
