"""The journal of a run: every event, in order, one JSON line each with a checksum; the truth.

A line is ``{"n": 7, "event": "rollout", "data": {...}, "at": "2026-01-31T12:00:00Z", "crc": "89abcdef"}``,
where `crc` is the CRC-32 of the bytes before ``,"crc"``. Lines are written at once and made durable by group
commit: one fsync serves all that was appended before it. A torn last line is cut off on reopening.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_tfgrpo.core.clock import utc_now
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.wire import Json

SCHEMA = "tfgrpo.journal/1"
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
GLANCES, GLANCE_S = 10, 0.01
"""How often the lock is tried, and the pause in between."""
_CRC = len(',"crc":"89abcdef"}')


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One line of a journal."""

    n: int
    """Line number, from 1."""
    event: str
    data: Json
    at: str = ""
    """When it was written, ISO 8601 in UTC; empty in older journals."""


def encode(n: int, event: str, data: Json) -> bytes:
    """Return the line of an event, newline and time included; raises ValueError or TypeError on non-JSON."""
    body = _ENCODER.encode({"n": n, "event": event, "data": data, "at": utc_now()})
    head = body[:-1].encode("ascii")
    return b'%s,"crc":"%08x"}\n' % (head, zlib.crc32(head))


def decode(line: bytes) -> Event | None:
    """Return the event of a line without its newline, or None when the line is damaged."""
    head, tail = line[:-_CRC], line[-_CRC:]
    if tail != b',"crc":"%08x"}' % zlib.crc32(head):
        return None
    value = json.loads(head + b"}")
    return Event(n=value["n"], event=value["event"], data=value["data"], at=value.get("at", ""))


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a journal, except a torn last line; raises JournalError on damage elsewhere."""
    for event, _ in _scan(path):
        yield event


def _scan(path: Path) -> Iterator[tuple[Event, int]]:
    """Yield each whole event with the offset of its end in the file."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                event = decode(line[:-1]) if line.endswith(b"\n") else None
                if event is None:
                    _require_end(path, number, file)
                    return
                offset += len(line)
                yield event, offset
    except JournalError:
        raise
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error}") from error


def _require_end(path: Path, number: int, file: BinaryIO) -> None:
    if file.readline():
        raise JournalError(
            f"{path}:{number}: this line of the journal is damaged, and more follow; "
            "the run cannot be resumed, start a new one"
        )


def is_open(path: Path) -> bool:
    """Return whether a process writes the journal at `path` right now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Journal:
    """The open journal of one run; used from one thread, locked against other processes."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending, cutting off a torn last line.

        Raises JournalError when it cannot be opened or another process has it open.
        """
        self.path = path
        self.events = 0
        self._end = 0
        self._durable = 0
        self._committing: asyncio.Task[None] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise JournalError(f"cannot open the journal {path}: {error}; is `out` writable?") from error
        self._lock()
        self._cut_torn_line()

    def _lock(self) -> None:
        """Lock the file; who only looks whether it is locked holds it for no longer than that."""
        for left in reversed(range(GLANCES)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if not left:
                    self._file.close()
                    raise JournalError(f"the journal {self.path} is in use by another process") from error
                time.sleep(GLANCE_S)

    def _cut_torn_line(self) -> None:
        for event, offset in _scan(self.path):
            self.events, self._end = event.n, offset
        os.ftruncate(self._file.fileno(), self._end)
        self._durable = self.events

    def append(self, event: str, data: Json) -> None:
        """Write one event; durable after the next commit.

        Raises JournalError when it cannot be written whole, ValueError or TypeError when `data` is not JSON.
        """
        line = encode(self.events + 1, event, data)
        try:
            written = self._file.write(line)
        except OSError as error:
            raise JournalError(f"cannot write the journal {self.path}: {error}") from error
        if written != len(line):
            os.ftruncate(self._file.fileno(), self._end)
            raise JournalError(f"cannot write the journal {self.path}: the disk is full")
        self.events += 1
        self._end += written

    async def commit(self) -> None:
        """Return once all that was appended before the call is on disk; calls in flight share an fsync."""
        wanted = self.events
        while self._durable < wanted:
            if self._committing is None:
                self._committing = asyncio.create_task(self._sync())
            await asyncio.shield(self._committing)

    async def _sync(self) -> None:
        reached = self.events
        try:
            await asyncio.to_thread(self._fsync)
            self._durable = reached
        finally:
            self._committing = None

    def _fsync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise JournalError(f"cannot sync the journal {self.path}: {error}") from error

    def close(self) -> None:
        """Sync, unlock and close."""
        if self._file.closed:
            return
        try:
            self._fsync()
        finally:
            self._file.close()
