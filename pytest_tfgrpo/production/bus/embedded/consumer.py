"""Durable consumers of the embedded bus, shared by the threads and processes that open the same name."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pytest_tfgrpo.production.bus.dead_letters import MAX_DELIVERIES_CODE, died
from pytest_tfgrpo.production.bus.embedded.blocks import first_sequence, last_sequence, read_events
from pytest_tfgrpo.production.bus.embedded.writer import BusOperation, BusTransaction, T
from pytest_tfgrpo.production.bus.protocol import FETCH_BYTES, MAX_DELIVERIES, MAX_PENDING
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent

CLOCK_SLACK_S = 1.0
"""A delivery noted further in the future than this was noted before the clock went back: its wait is over."""
_DUE = "consumer = ? AND (due_at <= ? OR touched_at > ?)"


class EmbeddedFile(Protocol):
    """What a consumer uses of its bus."""

    def write(self, operation: BusOperation[T]) -> T:
        """Run an operation in a transaction, and wait until it is durable."""
        ...

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query."""
        ...

    def wait_for_commit(self, seen: int, timeout_s: float) -> int:
        """Wait until something may have been stored since `seen`; returns what to pass the next time."""
        ...

    def forget(self) -> None:
        """Empty the write-ahead log, which has what was just overwritten."""
        ...

    def now(self) -> float:
        """Return the time by the bus's clock."""
        ...


class EmbeddedConsumer:
    """See `Consumer`."""

    def __init__(self, file: EmbeddedFile, stream: StreamSpec, name: str, ack_wait_s: float) -> None:
        self._file, self._stream, self._name, self._wait_s = file, stream, name, ack_wait_s
        self._number = file.write(self._open)

    def _open(self, transaction: BusTransaction) -> int:
        found = "SELECT id FROM consumers WHERE stream = ? AND name = ?"
        key = (self._stream.name, self._name)
        row = transaction.db.execute(found, key).fetchone()
        if row is None:
            transaction.db.execute("INSERT INTO consumers (stream, name, cursor) VALUES (?, ?, 0)", key)
            row = transaction.db.execute(found, key).fetchone()
        return int(row[0])

    def fetch(self, limit: int, timeout_s: float) -> list[BusEvent]:
        """Return up to `limit` events, oldest first, as soon as there is one; [] after `timeout_s`."""
        until = time.monotonic() + timeout_s
        seen = -1
        while True:
            if self._file.read(self._is_work):
                events = self._file.write(lambda transaction: self._take(transaction, limit))
                if events:
                    return events
            left = until - time.monotonic()
            if left <= 0:
                return []
            seen = self._file.wait_for_commit(seen, left)

    def _is_work(self, db: sqlite3.Connection) -> bool:
        now = self._file.now()
        cursor = self._cursor(db)
        if last_sequence(db, self._stream.name) > cursor and self._pending(db) < MAX_PENDING:
            return True
        due = f"SELECT 1 FROM deliveries WHERE {_DUE} LIMIT 1"
        return db.execute(due, (self._number, now, now + CLOCK_SLACK_S)).fetchone() is not None

    def _pending(self, db: sqlite3.Connection) -> int:
        query = "SELECT count(*) FROM deliveries WHERE consumer = ?"
        return int(db.execute(query, (self._number,)).fetchone()[0])

    def _cursor(self, db: sqlite3.Connection) -> int:
        return int(db.execute("SELECT cursor FROM consumers WHERE id = ?", (self._number,)).fetchone()[0])

    def _take(self, transaction: BusTransaction, limit: int) -> list[BusEvent]:
        transaction.flush(self._stream.name)
        db, now = transaction.db, transaction.now
        due = db.execute(
            f"SELECT sequence, attempts FROM deliveries WHERE {_DUE} ORDER BY sequence LIMIT ?",
            (self._number, now, now + CLOCK_SLACK_S, limit),
        ).fetchall()
        attempts = {sequence: made + 1 for sequence, made in due}
        oldest, last = first_sequence(db, self._stream), last_sequence(db, self._stream.name)
        room = min(limit - len(due), MAX_PENDING - self._pending(db))
        start = max(self._cursor(db) + 1, oldest)
        attempts |= dict.fromkeys(range(start, min(start + max(room, 0), last + 1)), 1)
        found = read_events(db, self._stream.name, attempts, FETCH_BYTES)
        events, gone = [], []
        for sequence, event in found.items():
            if event is None or sequence < oldest:
                gone.append(sequence)
            elif attempts[sequence] > MAX_DELIVERIES:
                spent = replace(event, attempts=MAX_DELIVERIES)
                self._bury(transaction, [spent], MAX_DELIVERIES_CODE, "it was delivered and never settled")
            else:
                events.append(replace(event, attempts=attempts[sequence]))
        self._settle(db, gone)
        self._deliver(db, events, now, now + self._wait_s)
        if found and (newest := max(found)) >= start:
            db.execute("UPDATE consumers SET cursor = ? WHERE id = ?", (newest, self._number))
        return events

    def _deliver(self, db: sqlite3.Connection, events: Sequence[BusEvent], now: float, due: float) -> None:
        db.executemany(
            "INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?, ?, ?)",
            [(self._number, event.sequence, event.attempts, now, due) for event in events],
        )

    def _settle(self, db: sqlite3.Connection, sequences: Sequence[int]) -> None:
        rows = [(self._number, sequence) for sequence in sequences]
        db.executemany("DELETE FROM deliveries WHERE consumer = ? AND sequence = ?", rows)

    def _bury(self, transaction: BusTransaction, events: Sequence[BusEvent], code: str, message: str) -> None:
        transaction.append([died(event, self._stream.name, self._name, code, message) for event in events])
        self._settle(transaction.db, [event.sequence for event in events])

    def ack(self, events: Sequence[BusEvent]) -> None:
        """Settle events for good."""
        sequences = [event.sequence for event in events]
        self._file.write(lambda transaction: self._settle(transaction.db, sequences))

    def nak(self, events: Sequence[BusEvent], delay_s: float = 0.0) -> None:
        """Give events back, to be delivered again after `delay_s`; settled ones stay so."""

        def give_back(transaction: BusTransaction) -> None:
            now = transaction.now
            transaction.db.executemany(
                "UPDATE deliveries SET touched_at = ?, due_at = ? WHERE consumer = ? AND sequence = ?",
                [(now, now + delay_s, self._number, event.sequence) for event in events],
            )

        self._file.write(give_back)

    def bury(self, events: Sequence[BusEvent], code: str, message: str) -> None:
        """Move events to RL_DEAD at once."""
        self._file.write(lambda transaction: self._bury(transaction, events, code, message))

    def lag(self) -> int:
        """Return how many events wait or are delivered and not acknowledged."""

        def count(db: sqlite3.Connection) -> int:
            before = max(self._cursor(db), first_sequence(db, self._stream) - 1)
            return self._pending(db) + max(last_sequence(db, self._stream.name) - before, 0)

        return self._file.read(count)
