"""The bus in a file: SQLite, for the threads and processes of one machine."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.chain import check_records
from pytest_tfgrpo.production.bus.embedded.blocks import (
    erase,
    first_sequence,
    last_sequence,
    read_blocks,
    sequence_at,
)
from pytest_tfgrpo.production.bus.embedded.consumer import EmbeddedConsumer
from pytest_tfgrpo.production.bus.embedded.file import BUS, open_file
from pytest_tfgrpo.production.bus.embedded.table import EmbeddedTable, check_puts, write_rows
from pytest_tfgrpo.production.bus.embedded.writer import BusOperation, BusTransaction, GroupWriter, T
from pytest_tfgrpo.production.bus.protocol import ACK_WAIT_S, check_events, check_key, check_name
from pytest_tfgrpo.production.bus.streams import STREAMS, StreamSpec, by_subject, named
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, TablePut

_POLL_S = 0.02
"""How often a waiting reader looks for what other processes have stored."""
_READ_BLOCKS = 64
"""Blocks that a replay reads at once."""


def open_embedded(
    path: Path, streams: Sequence[StreamSpec] = STREAMS, clock: Callable[[], float] = time.time
) -> EmbeddedBus:
    """Return the bus in the file at `path`, which is made where it is missing; raises BusError."""
    return EmbeddedBus(path, streams, clock)


class EmbeddedBus:
    """See `Bus`."""

    atomic = True

    def __init__(self, path: Path, streams: Sequence[StreamSpec], clock: Callable[[], float]) -> None:
        self._path, self._streams, self._clock = path, streams, clock
        self._subjects = by_subject(streams)
        self._reading = threading.Lock()
        self._open = True
        with BUS.advised(path), ExitStack() as unused:
            self._db = unused.enter_context(closing(open_file(path, streams)))
            self._reader = unused.enter_context(closing(BUS.connect(path)))
            self._writer = GroupWriter(self._db, path, streams, clock)
            unused.pop_all()  # `close` closes them

    def publish(self, events: Sequence[BusEvent], puts: Sequence[TablePut] = ()) -> list[int]:
        """Store events, and rows of the table ``state``, in one transaction; returns the sequences."""
        check_events(events, self._subjects)
        check_records(events, self._subjects)
        for put in puts:
            check_key(put.key)

        def write(transaction: BusTransaction) -> list[int]:
            check_puts(transaction.db, STATE, puts)
            sequences = transaction.append(events)
            write_rows(transaction.db, STATE, puts, transaction.now)
            return sequences

        return self.write(write)

    def consumer(self, stream: str, name: str, *, ack_wait_s: float = ACK_WAIT_S) -> EmbeddedConsumer:
        """Return a durable consumer, which starts with the oldest event when it is made."""
        return EmbeddedConsumer(self, named(self._streams, stream), check_name(name, "consumer"), ack_wait_s)

    def replay(
        self, stream: str, *, since_sequence: int = 1, since_time: float | None = None
    ) -> Iterator[BusEvent]:
        """Yield the events stored up to now, oldest first, from a sequence or a time of arrival on."""
        spec = named(self._streams, stream)

        def start(db: sqlite3.Connection) -> tuple[int, int]:
            first = max(first_sequence(db, spec), since_sequence)
            if since_time is not None:
                first = max(first, sequence_at(db, stream, since_time))
            return first, last_sequence(db, stream)

        sequence, last = self.read(start)
        return self._events(stream, sequence, last)

    def _events(self, stream: str, sequence: int, last: int) -> Iterator[BusEvent]:
        while sequence <= last:
            at = sequence
            found = self.read(lambda db: read_blocks(db, stream, at, _READ_BLOCKS))  # noqa: B023 - used at once
            if not found:
                return
            for block in found:
                for number in range(max(block.first, sequence), min(block.next, last + 1)):
                    if (event := block.event(number)) is not None:
                        yield event
            sequence = found[-1].next

    def last(self, stream: str) -> int:
        """Return the sequence of the newest event; 0 if there was none."""
        name = named(self._streams, stream).name
        return self.read(lambda db: last_sequence(db, name))

    def delete(self, stream: str, ids: Collection[str]) -> int:
        """Overwrite the data of events on disk; returns how many were there."""
        name = named(self._streams, stream).name

        def write(transaction: BusTransaction) -> int:
            transaction.flush(name)
            return erase(transaction.db, name, ids)

        gone = self.write(write)
        self.forget()
        return gone

    def table(self, name: str) -> EmbeddedTable:
        """Return a table, which is made where it is missing."""
        return EmbeddedTable(self, check_name(name, "table"))

    def close(self) -> None:
        """Finish what was published, and let go of the file."""
        self._open = False
        self._writer.close()
        with self._reading:
            self._reader.close()
            self._db.close()

    # for consumers and tables

    def write(self, operation: BusOperation[T]) -> T:
        """Run an operation in a transaction, and wait until it is durable."""
        return self._writer.call(operation)

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query."""
        with self._reading, BUS.advised(self._path):
            self._check_open()
            return query(self._reader)

    def _check_open(self) -> None:
        if not self._open:
            raise BusError(f"embedded bus {str(self._path)!r} is closed")

    def wait_for_commit(self, seen: int, timeout_s: float) -> int:
        """Wait until something may have been stored since `seen`; returns what to pass the next time."""
        self._check_open()
        writer = self._writer
        with writer.committed:
            if writer.commits == seen or seen < 0:
                writer.committed.wait(min(timeout_s, _POLL_S))
            return writer.commits

    def now(self) -> float:
        """Return the time by the bus's clock."""
        return self._clock()

    def forget(self) -> None:
        """Empty the write-ahead log, which has what was overwritten; raises BusError if somebody reads it."""
        until = time.monotonic() + BUS.busy_s
        with self._reading, BUS.advised(self._path):
            while self._reader.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > until:
                    raise BusError(
                        f"embedded bus {str(self._path)!r}: another process reads it for {BUS.busy_s:g} s; "
                        "what was deleted stays in its write-ahead log until that ends: delete it again then"
                    )
                time.sleep(0.01)
