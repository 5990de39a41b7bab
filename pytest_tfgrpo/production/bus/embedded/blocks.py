"""Events of a stream in the embedded bus's file, many to a row.

A row is a block: up to a page of events that one transaction stored. That costs a fraction of a row for each,
and no index grows with the stream.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from types import NoneType
from uuid import UUID

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.embedded.file import PAGE_BYTES, blocks
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent

ID_BYTES = 16
_ROOM = PAGE_BYTES - 600
_OVERHEAD = 60
"""Bytes of id, time and length, about."""
_COLUMNS = "first, count, at, ids, head, body"


def ids_bytes(ids: Sequence[str]) -> list[bytes]:
    """Return the 16 bytes of each UUID, which must be one."""
    whole = bytes.fromhex("".join(ids).replace("-", ""))
    return [whole[n : n + ID_BYTES] for n in range(0, len(whole), ID_BYTES)]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBlock:
    """One row: events with the sequences `first`, `first` + 1, ..."""

    first: int
    at: float
    ids: bytes
    subjects: Sequence[str]
    times: Sequence[str]
    ends: Sequence[int | None]
    """Where the data of each event ends in the body; None for one that was deleted."""
    body: bytes

    @property
    def next(self) -> int:
        """Return the sequence after the last one."""
        return self.first + len(self.ids) // ID_BYTES

    def event(self, sequence: int) -> BusEvent | None:
        """Return one event; None where it was deleted."""
        at = sequence - self.first
        if at >= len(self.ends) or (end := self.ends[at]) is None:
            return None
        start = next((e for e in reversed(self.ends[:at]) if e is not None), 0)
        return BusEvent(
            id=str(UUID(bytes=self.ids[at * ID_BYTES : (at + 1) * ID_BYTES])),
            subject=self.subjects[at],
            time=self.times[at],
            data=self.body[start:end],
            sequence=sequence,
            arrived=self.at,
        )

    def without(self, ids: Collection[bytes]) -> tuple[EventBlock, int]:
        """Return the block without the data of some events, and how many that were."""
        mine = [self.ids[n : n + ID_BYTES] for n in range(0, len(self.ids), ID_BYTES)]
        parts: list[bytes] = []
        ends: list[int | None] = []
        start = length = gone = 0
        for number, end in enumerate(self.ends):
            if end is None or mine[number] in ids:
                ends.append(None)
                gone += end is not None
            else:
                parts.append(self.body[start:end])
                length += end - start
                ends.append(length)
            start = start if end is None else end
        made = EventBlock(
            first=self.first,
            at=self.at,
            ids=self.ids,
            subjects=self.subjects,
            times=self.times,
            ends=ends,
            body=b"".join(parts),
        )
        return made, gone

    def head(self) -> str:
        """Return what is stored beside ids and data."""
        return json.dumps([_once(self.subjects), _once(self.times), list(self.ends)])


def _once(texts: Sequence[str]) -> str | list[str]:
    """Return texts, one alone where all are equal."""
    different = set(texts)
    return different.pop() if len(different) == 1 else list(texts)


def _block(stream: str, row: tuple[int, int, float, bytes, str | None, bytes | None]) -> EventBlock:
    """Return a row as a block; raises BusError for one that nobody here wrote so."""
    first, count, at, ids, head, body = row
    try:
        subjects, times, ends = ("", [], []) if head is None else json.loads(head)
        subjects, times = ([one] * count if isinstance(one, str) else one for one in (subjects, times))
        whole = len(ids) == count * ID_BYTES and isinstance(body, bytes | None)
        whole = whole and (head is None or len(subjects) == len(times) == len(ends) == count)
        whole = whole and {str} >= {*map(type, subjects), *map(type, times)}
        whole = whole and {int, NoneType} >= {*map(type, ends)}
    except (ValueError, TypeError):
        whole = False
    if not whole:
        raise BusError(
            f"events {first} to {first + count - 1} of {stream} were changed by another program, or damaged; "
            "put the bus back from a copy of its data"
        )
    return EventBlock(
        first=first, at=at, ids=ids, subjects=subjects, times=times, ends=ends, body=body or b""
    )


def append(db: sqlite3.Connection, stream: str, first: int, events: Sequence[BusEvent], at: float) -> int:
    """Store events from the sequence `first` on; returns how many rows that made."""
    rows = []
    sizes = list(accumulate([len(event.data) + _OVERHEAD for event in events], initial=0))
    for start, stop in _cuts(sizes):
        part = events[start:stop]
        block = EventBlock(
            first=first + start,
            at=at,
            ids=bytes.fromhex("".join([event.id for event in part]).replace("-", "")),
            subjects=[event.subject for event in part],
            times=[event.time for event in part],
            ends=list(accumulate([len(event.data) for event in part])),
            body=b"".join([event.data for event in part]),
        )
        rows.append((block.first, stop - start, at, block.ids, block.head(), block.body))
    db.executemany(f"INSERT INTO {blocks(stream)} VALUES (?, ?, ?, ?, ?, ?)", rows)
    return len(rows)


def _cuts(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield from where to where events fit on a page, from running totals; one that does not is alone."""
    start = 0
    while start < len(sizes) - 1:
        stop = max(bisect_right(sizes, sizes[start] + _ROOM) - 1, start + 1)
        yield start, stop
        start = stop


def read_blocks(
    db: sqlite3.Connection, stream: str, sequence: int, limit: int | None = None
) -> list[EventBlock]:
    """Return the blocks from the one that holds `sequence` on, at most `limit`."""
    table = blocks(stream)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {table} WHERE first >="
        f" coalesce((SELECT max(first) FROM {table} WHERE first <= ?), 0) ORDER BY first LIMIT ?",
        (sequence, -1 if limit is None else limit),
    )
    found = [_block(stream, row) for row in rows]
    return found[1:] if found and found[0].next <= sequence else found


def read_events(
    db: sqlite3.Connection, stream: str, sequences: Iterable[int], max_bytes: int
) -> dict[int, BusEvent | None]:
    """Return events by sequence, None for those that are gone; stops after `max_bytes` of data."""
    found: dict[int, BusEvent | None] = {}
    held: list[EventBlock] = []
    size = 0
    for sequence in sequences:
        if not held or not held[0].first <= sequence < held[0].next:
            held = read_blocks(db, stream, sequence, limit=1)
        inside = held and held[0].first <= sequence
        event = found[sequence] = held[0].event(sequence) if inside else None
        size += len(event.data) if event else 0
        if size >= max_bytes:
            break
    return found


def newest_event(db: sqlite3.Connection, stream: str) -> BusEvent | None:
    """Return the newest event that is there; None where none is."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM {blocks(stream)} ORDER BY first DESC"):
        block = _block(stream, row)
        for sequence in range(block.next - 1, block.first - 1, -1):
            if (event := block.event(sequence)) is not None:
                return event
    return None


def last_sequence(db: sqlite3.Connection, stream: str) -> int:
    """Return the sequence of the newest event; 0 if there was none."""
    row = db.execute(f"SELECT first + count - 1 FROM {blocks(stream)} ORDER BY first DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0


def first_sequence(db: sqlite3.Connection, stream: StreamSpec) -> int:
    """Return the sequence of the oldest event that is kept."""
    row = db.execute(f"SELECT first FROM {blocks(stream.name)} ORDER BY first LIMIT 1").fetchone()
    oldest = int(row[0]) if row else 1
    if stream.max_count is None:
        return oldest
    return max(oldest, last_sequence(db, stream.name) - stream.max_count + 1)


def sequence_at(db: sqlite3.Connection, stream: str, since: float) -> int:
    """Return the first sequence that arrived at `since` or later; the next one if there is none."""
    row = db.execute(f"SELECT min(first) FROM {blocks(stream)} WHERE at >= ?", (since,)).fetchone()
    return last_sequence(db, stream) + 1 if row[0] is None else int(row[0])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def erase(db: sqlite3.Connection, stream: str, ids: Collection[str]) -> int:
    """Remove the data of events, whose ids and sequences stay; returns how many were there."""
    wanted = {found.bytes for found in map(_uuid, ids) if found}
    hit = []
    for first, mine in db.execute(f"SELECT first, ids FROM {blocks(stream)} WHERE head IS NOT NULL"):
        if any(mine[n : n + ID_BYTES] in wanted for n in range(0, len(mine), ID_BYTES)):
            hit.append(first)
    gone = 0
    for first in hit:
        block, count = read_blocks(db, stream, first, limit=1)[0].without(wanted)
        gone += count
        db.execute(
            f"UPDATE {blocks(stream)} SET head = ?, body = ? WHERE first = ?",
            (block.head(), block.body, first),
        )
    return gone


def _ahead_of_time(db: sqlite3.Connection, table: str, now: float, old: float) -> int:
    """Return the sequence up to which the oldest blocks are too old though their times are in the future.

    A clock that was ahead stamped them: they came before the first block that is not in the future.
    """
    row = db.execute(f"SELECT first, at FROM {table} WHERE at <= ? ORDER BY first LIMIT 1", (now,)).fetchone()
    return int(row[0]) if row and row[1] < old else 0


def expire(db: sqlite3.Connection, stream: StreamSpec, now: float, limit: int) -> bool:
    """Remove up to `limit` blocks that are too old or too many; returns whether there may be more.

    The newest block stays as a mark of the sequence, without its events when these are too old.
    """
    table = blocks(stream.name)
    last = last_sequence(db, stream.name)
    keep_from = 0 if stream.max_count is None else last - stream.max_count + 1
    rows = db.execute(f"SELECT first, count, at FROM {table} ORDER BY first LIMIT ?", (limit,))
    old = now - stream.max_age_s
    ahead = _ahead_of_time(db, table, now, old)
    # each row is a page to read: it stops at the first that stays
    front = takewhile(lambda row: row[2] < old or row[0] < ahead or row[0] + row[1] <= keep_from, rows)
    stale = [(first, count) for first, count, _ in front]
    rows.close()
    gone = [first for first, count in stale if first + count - 1 < last]
    db.executemany(f"DELETE FROM {table} WHERE first = ?", [(first,) for first in gone])
    if len(gone) < len(stale):
        db.execute(
            f"UPDATE {table} SET head = NULL, body = NULL WHERE first = ? AND head IS NOT NULL",
            (stale[-1][0],),
        )
    return len(gone) == limit
