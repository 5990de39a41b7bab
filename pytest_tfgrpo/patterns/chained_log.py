"""A log in which each line holds the hash of one before it, so that no line is changed without a trace.

Two branches that each add a line may be merged line by line: both lines then hold the hash of the same one
before. What was cut off at the end is seen only against a head that was kept elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain, sync_folder
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
        with self._locked() as file:
            lines = file.read_lines()
            self._check(lines)
            line = _line(entry, lines)
            file.write_line(line)
        return _hash(line)

    def complete(self, entries: Sequence[Mapping[str, Json]], key: str) -> int:
        """Append the entries whose value of `key` no line has, and return how many; raises StoreError.

        So whoever keeps the entries elsewhere may repeat this after a crash, and each is there once.
        """
        with self._locked() as file:
            lines = file.read_lines()
            known = {entry.get(key) for entry in self._check(lines)}
            missing = [entry for entry in entries if entry[key] not in known]
            for entry in missing:
                lines.append(_line(entry, lines))
                file.write_line(lines[-1])
        return len(missing)

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
            known.add(_hash(line))
            known.discard(NOTHING)
            found.append(value)
        return found

    @contextmanager
    def _locked(self) -> Iterator[_LogFile]:
        """Open the file, alone among all processes; raises StoreError for every OSError in here."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(self.path, flags, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise StoreError(f"{self.path} is no regular file; move it away")
                fcntl.flock(handle, fcntl.LOCK_EX)
                file = _LogFile(handle)
                yield file
                if file.is_new:
                    sync_folder(self.path.parent)
            finally:
                os.close(handle)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"cannot write {self.path}: {error.strerror or error}; make room, and let it be a plain file "
                "that this user may write"
            ) from error


class _LogFile:
    """The file of a log while it is locked."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._end = 0
        self.is_new = os.fstat(handle).st_size == 0

    def read_lines(self) -> list[bytes]:
        """Return the whole lines; a last one that was cut by a kill is written over."""
        size, parts = os.fstat(self._handle).st_size, list[bytes]()
        while size > (there := sum(map(len, parts))):
            part = os.pread(self._handle, size - there, there)
            if not part:
                break
            parts.append(part)
        data = b"".join(parts)
        self._end = data.rfind(b"\n") + 1
        return _whole(data)

    def write_line(self, line: bytes) -> None:
        """Write a line to disk, whole or not at all."""
        data, written = line + b"\n", 0
        try:
            os.ftruncate(self._handle, self._end)
            while written < len(data):
                written += os.pwrite(self._handle, data[written:], self._end + written)
            os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, self._end)
            raise
        self._end += len(data)


def _line(entry: Mapping[str, Json], lines: Sequence[bytes]) -> bytes:
    value = {TIME: utc_now(), **entry, PREVIOUS: _hash(lines[-1]) if lines else NOTHING}
    return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True).encode()


def _whole(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
