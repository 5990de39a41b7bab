"""The journal of a run: every event, in order, one JSON line each with a checksum; the truth.

A line is ``{"n": 7, "event": "rollout", "data": {...}, "at": "2026-01-31T12:00:00Z", "crc": "89abcdef"}``,
where `crc` is the CRC-32 of the bytes before ``,"crc"``. Lines are written at once and made durable by group
commit: one fsync serves all that was appended before it. A torn last line is cut off on reopening; any other
damage, and a line whose number is not its place, is refused with file and line.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError, describe
from pytest_tfgrpo.core.files import open_plain, sync_folder
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

SCHEMA = "tfgrpo.journal/1"
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
GLANCES, GLANCE_S = 10, 0.01
"""How often the lock is tried, and the pause in between."""
TAIL = 4096
"""Bytes at the end of a journal that contain its last line, except with many warnings."""
AT_ONCE = 1000
"""Parts of a long line that are written at once."""
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


def _listed(items: Iterable[Json]) -> Iterator[str]:
    """Yield the text of a list except for its brackets."""
    for n, item in enumerate(items):
        yield f",{_ENCODER.encode(item)}" if n else _ENCODER.encode(item)


def _checked(texts: Iterator[str]) -> Iterator[bytes]:
    """Yield the line of which `texts` are all but the checksum, some of them at a time."""
    crc = 0
    while some := [*islice(texts, AT_ONCE)]:
        piece = "".join(some).encode("ascii")
        crc = zlib.crc32(piece, crc)
        yield piece
    yield b',"crc":"%08x"}\n' % crc


def decode(line: bytes) -> Event | None:
    """Return the event of a line without its newline, or None when the line is damaged.

    Raises ValueError when it is whole, but no event.
    """
    head, tail = line[:-_CRC], line[-_CRC:]
    if tail != b',"crc":"%08x"}' % zlib.crc32(head):
        return None
    try:
        value = json.loads(f"{head.decode()}}}")  # of text it need not find out the encoding
        return Event(n=value["n"], event=value["event"], data=value["data"], at=value.get("at", ""))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not an event: {describe(error)}") from None


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a journal, except a torn last line.

    Raises JournalError naming the line on any other damage, and where lines are missing, doubled or moved.
    """
    for event, _ in scan(path):
        yield event


def scan(path: Path, lines: int = 0, offset: int = 0) -> Iterator[tuple[Event, int]]:
    """Yield each whole event with the offset of its end in the file; raises JournalError as `read` does.

    It begins after so many `lines`, which end at an `offset`.
    """
    try:
        with open_plain(path) as file:
            file.seek(offset)
            for number, line in enumerate(file, start=lines + 1):
                event = decode(line[:-1]) if line.endswith(b"\n") else None
                if event is None:
                    if file.readline():
                        raise damage(path, number, "it is damaged, and more lines follow")
                    return
                if event.n != number:
                    raise damage(path, number, f"its number n is {event.n!r:.40}: lines are missing or moved")
                offset += len(line)
                yield event, offset
    except JournalError:
        raise
    except ValueError as error:
        raise damage(path, number, str(error)) from None
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error}") from error


def damage(path: Path, number: int, what: str) -> JournalError:
    """Return the error for a line of a journal that cannot be relied on."""
    return JournalError(
        f"{path}:{number}: this line of the journal cannot be relied on: {what}; restore the file, or delete "
        "the run's folder and start a new run"
    )


def is_open(path: Path) -> bool:
    """Return whether a process writes the journal at `path` right now."""
    try:
        with open_plain(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ended_at(path: Path, finished_at: str) -> bool:
    """Return whether a journal ends with the end of a run at `finished_at`; its last line alone is read.

    Raises JournalError when it cannot be read.
    """
    try:
        with open_plain(path) as file:
            size, reach, tail = file.seek(0, os.SEEK_END), 0, b""
            while tail.count(b"\n") < 2 and reach < size:
                reach = min(size, 2 * reach + TAIL)
                file.seek(size - reach)
                tail = file.read(reach)
        event = decode(tail.splitlines()[-1]) if tail.endswith(b"\n") else None
        return event is not None and event.event == "finish" and event.data["finished_at"] == finished_at
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error}") from error
    except (KeyError, TypeError, ValueError):
        return False


class Journal:
    """The open journal of one run; used from one thread, locked against other processes."""

    def __init__(self, path: Path, lines: int = 0, end: int = 0) -> None:
        """Open `path` for appending, cutting off a torn last line.

        So many `lines`, which end at the offset `end`, were read just now, and are not read again.
        Raises JournalError when it cannot be opened or another process has it open.
        """
        self.path = path
        self.events = lines
        self._end = end
        self._durable = 0
        self._committing: asyncio.Task[None] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise JournalError(f"cannot open the journal {path}: {error}; is `out` writable?") from error
        try:
            self._lock()
            self._cut_torn_line()
            self._sync_names()
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        """Lock the file; who only looks whether it is locked holds it for no longer than that."""
        for left in reversed(range(GLANCES)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if not left:
                    raise JournalError(f"the journal {self.path} is in use by another process") from error
                time.sleep(GLANCE_S)

    def _cut_torn_line(self) -> None:
        if os.fstat(self._file.fileno()).st_size < self._end:  # another file has taken its place
            self.events = self._end = 0
        for event, offset in scan(self.path, self.events, self._end):
            self.events, self._end = event.n, offset
        os.ftruncate(self._file.fileno(), self._end)
        self._durable = self.events

    def _sync_names(self) -> None:
        """Make the names of the file and of its folder durable."""
        try:
            for folder in (self.path.parent, self.path.parent.parent):
                sync_folder(folder)
        except OSError as error:
            raise JournalError(f"cannot sync the folder of the journal {self.path}: {error}") from error

    def append(self, event: str, data: Json) -> None:
        """Write one event; durable after the next commit.

        Raises JournalError when it cannot be written whole, ValueError or TypeError when `data` is not JSON.
        """
        self._write([encode(self.events + 1, event, data)])

    def append_long(self, event: str, data: Mapping[str, Json], key: str, items: Iterable[Json]) -> None:
        """Write one event like `append`, of whose `data` the list `key` is as long as there are `items`.

        They are not held at once: `data` has an empty list.
        """
        body = encode(self.events + 1, event, data)[: -_CRC - 1].decode("ascii")
        before, empty, after = body.partition(f'"{key}":[]')
        if not empty:
            raise ValueError(f"{key!r} is no empty list in {sorted(data)}")
        self._write(_checked(chain([before, empty[:-1]], _listed(items), ["]", after])))

    def _write(self, pieces: Iterable[bytes]) -> None:
        """Write the pieces of a line, or nothing."""
        start, whole = self._end, False
        try:
            for piece in pieces:
                written = self._file.write(piece)
                self._end += written
                if written != len(piece):
                    raise JournalError(f"cannot write the journal {self.path}: the disk is full")
            whole = True
        except OSError as error:
            raise JournalError(f"cannot write the journal {self.path}: {error}") from error
        finally:
            if not whole:
                self._end = start
                with suppress(OSError):
                    os.ftruncate(self._file.fileno(), start)
        self.events += 1

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
