"""The one thread that writes for a process: what waits is one transaction, and one wait for the disk."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Generic, TypeVar

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.threads import start_thread
from pytest_tfgrpo.production.bus.chain import linked
from pytest_tfgrpo.production.bus.embedded.blocks import (
    append,
    expire,
    ids_bytes,
    last_sequence,
    newest_event,
)
from pytest_tfgrpo.production.bus.embedded.file import BUS
from pytest_tfgrpo.production.bus.embedded.ids import RecentIds
from pytest_tfgrpo.production.bus.streams import StreamSpec, by_subject
from pytest_tfgrpo.storage.database import transaction
from pytest_tfgrpo.storage.event_store import BusEvent

T = TypeVar("T")
_AT_ONCE = 256
"""Calls that share a transaction."""
_SWEEP_S = 60.0
"""How often retention looks at streams that nobody writes to."""
_SWEEP_BLOCKS = 16


class BusTransaction:
    """What one transaction stores; events stay in memory until it ends or somebody reads their stream."""

    def __init__(
        self, db: sqlite3.Connection, streams: Sequence[StreamSpec], ids: dict[str, RecentIds], now: float
    ) -> None:
        self.db, self.now = db, now
        self.streams = by_subject(streams)
        self._ids = ids
        self._last: dict[str, int] = {}
        self._waiting: dict[str, list[BusEvent]] = {}
        self._stored: dict[str, dict[bytes, int]] = {}

    def append(self, events: Sequence[BusEvent]) -> list[int]:
        """Return the sequences that events get, or have where their ids are known."""
        keys = ids_bytes([event.id for event in events])
        subjects = {event.subject for event in events}
        specs = [self.streams[subject] for subject in subjects]
        names = {spec.name for spec in specs}
        for name in names:
            self._begin(name)
        chained = any(spec.chained for spec in specs)
        if not chained and len(names) == 1 and self._are_new(name := names.pop(), keys):
            start = self._last[name] + 1
            sequences = list(range(start, start + len(events)))
            self._stored[name].update(zip(keys, sequences, strict=True))
            self._last[name] += len(events)
            self._waiting.setdefault(name, []).extend(events)
            return sequences
        return [self._append_one(event, key) for event, key in zip(events, keys, strict=True)]

    def _begin(self, stream: str) -> None:
        if stream not in self._last:
            self._ids[stream].catch_up(self.db, self.now)
            self._last[stream] = last_sequence(self.db, stream)
            self._stored[stream] = {}

    def _are_new(self, stream: str, keys: Sequence[bytes]) -> bool:
        """Return whether no id is known, in one look at all of them."""
        return (
            len(set(keys)) == len(keys)
            and self._stored[stream].keys().isdisjoint(keys)
            and self._ids[stream].has_none_of(keys)
        )

    def _append_one(self, event: BusEvent, key: bytes) -> int:
        spec = self.streams[event.subject]
        stream = spec.name
        stored = self._stored[stream]
        known = stored.get(key)
        if known is None:
            known = self._ids[stream].find(self.db, key, self.now)
        if known is None:
            waiting = self._waiting.setdefault(stream, [])
            if spec.chained:
                event = linked(event, waiting[-1] if waiting else newest_event(self.db, stream))
            self._last[stream] += 1
            known = stored[key] = self._last[stream]
            waiting.append(event)
        return known

    def flush(self, stream: str) -> int:
        """Write what waits for a stream; returns how many blocks that made."""
        events = self._waiting.pop(stream, [])
        return (
            append(self.db, stream, self._last[stream] - len(events) + 1, events, self.now) if events else 0
        )

    def finish(self) -> None:
        """Write all that waits, and let as much go as retention says, a little more than came."""
        for stream in list(self._waiting):
            made = self.flush(stream)
            spec = next(one for one in self.streams.values() if one.name == stream)
            expire(self.db, spec, self.now, made + 2)

    def committed(self) -> None:
        """Remember what is stored now."""
        for stream, stored in self._stored.items():
            self._ids[stream].add(stored, self._last[stream], self.now)


BusOperation = Callable[[BusTransaction], T]
"""Runs within a transaction that others share: it raises before it has changed anything, or not at all."""


class _Call(Generic[T]):
    def __init__(self, operation: BusOperation[T]) -> None:
        self.operation = operation
        self.future: Future[T] = Future()
        self.outcome: T

    def run(self, transaction: BusTransaction) -> None:
        self.outcome = self.operation(transaction)


class GroupWriter:
    """Runs operations, those that wait together; each returns when its transaction is on disk."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, streams: Sequence[StreamSpec], clock: Callable[[], float]
    ) -> None:
        self._db, self._path, self._streams, self._clock = db, path, streams, clock
        self._file = _identity(path)
        self._ids = {stream.name: RecentIds(stream.name) for stream in streams}
        self._calls: deque[_Call[object]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._emptied_at = -1
        """Changes there were when the write-ahead log was last emptied; a dead process may have left it."""
        self.commits = 0
        self.committed = threading.Condition()
        """Notified after each transaction of this process."""
        self._thread = start_thread(self._run, "tfgrpo-bus")

    def call(self, operation: BusOperation[T]) -> T:
        """Return what an operation returns, once that is durable; raises what it raises, or BusError."""
        call = _Call(operation)
        with self._changed:
            if self._closed:
                raise BusError(f"embedded bus {str(self._path)!r} is closed")
            self._calls.append(call)  # type: ignore[arg-type]
            self._changed.notify()
        return call.future.result()

    def close(self) -> None:
        """Finish what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        with self.committed:
            self.committed.notify_all()

    def _run(self) -> None:
        swept = time.monotonic()
        while True:
            with self._changed:
                if not self._calls and not self._closed:
                    self._changed.wait(_SWEEP_S)
                if not self._calls and self._closed:
                    return
                calls = [self._calls.popleft() for _ in range(min(len(self._calls), _AT_ONCE))]
            if calls:
                self._commit(calls)
            if time.monotonic() - swept >= _SWEEP_S:
                swept = time.monotonic()
                self._sweep()

    def _commit(self, calls: Sequence[_Call[object]]) -> None:
        try:
            if _identity(self._path) != self._file:
                raise BusError(
                    f"embedded bus {str(self._path)!r} was moved or deleted while this process used it, so "
                    "nothing more can be stored in it; start the process again"
                )
            with BUS.advised(self._path):
                failed = self._transact(calls)
        except BaseException as error:  # noqa: BLE001 - the thread goes on, and its callers raise
            failed = dict.fromkeys(calls, error)
        for call in calls:
            if (reason := failed.get(call)) is not None:
                call.future.set_exception(reason)
            else:
                call.future.set_result(call.outcome)
        with self.committed:
            self.commits += 1
            self.committed.notify_all()

    def _transact(self, calls: Sequence[_Call[object]]) -> dict[_Call[object], BaseException]:
        """Run calls in one transaction; returns which of them refused on their own."""
        failed: dict[_Call[object], BaseException] = {}
        with transaction(self._db) as db:
            stored = BusTransaction(db, self._streams, self._ids, self._clock())
            for call in calls:
                try:
                    call.run(stored)
                except BusError as error:
                    failed[call] = error
            stored.finish()
        stored.committed()
        return failed

    def _sweep(self) -> None:
        """Let go of what is too old, a little in each transaction, until somebody wants to write."""
        try:
            for stream in self._streams:
                more = True
                while more:
                    with self._changed:
                        if self._calls or self._closed:
                            return
                    with transaction(self._db) as db:
                        more = expire(db, stream, self._clock(), _SWEEP_BLOCKS)
            if self._db.total_changes > self._emptied_at:  # the log or the file has what is gone
                self._db.execute("PRAGMA busy_timeout = 0")
                busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:  # else somebody reads it, and the next sweep tries again
                    self._emptied_at = self._db.total_changes
        except sqlite3.Error:
            pass  # the next call says what is wrong, or the next sweep finds it well
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {int(BUS.busy_s * 1000)}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file is at a path; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
