"""Events in blocks: where one starts, what a deletion takes, and exactly when a block goes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from support.buses import STREAM, event, events

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.embedded.blocks import (
    append,
    erase,
    expire,
    first_sequence,
    last_sequence,
    read_blocks,
    read_events,
    sequence_at,
)
from pytest_tfgrpo.production.bus.embedded.file import PAGE_BYTES, blocks
from pytest_tfgrpo.production.bus.embedded.ids import RecentIds
from pytest_tfgrpo.production.bus.protocol import DEDUPE_S
from pytest_tfgrpo.production.bus.streams import StreamSpec

SPEC = StreamSpec(name=STREAM, subjects=(), max_age_s=100.0)


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute(
            f"CREATE TABLE {blocks(STREAM)} (first INTEGER PRIMARY KEY, count, at, ids BLOB, head, body BLOB)"
        )
        yield made


def three_blocks(db: sqlite3.Connection) -> None:
    """Store 1 and 2 at 10, 3 at 20, 4 to 6 at 30."""
    for first, count, at in ((1, 2, 10.0), (3, 1, 20.0), (4, 3, 30.0)):
        append(db, STREAM, first, events(count, start=first), at)


def firsts(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute(f"SELECT first FROM {blocks(STREAM)} ORDER BY first")]


def test_an_event_comes_back_with_its_own_subject_time_and_arrival(db: sqlite3.Connection) -> None:
    sent = [event(1), replace(event(2), time="2026-01-02T00:00:00Z"), event(3, b"c", subject="another.v1")]
    assert append(db, STREAM, 7, sent, 12.5) == 1
    got = read_events(db, STREAM, [7, 8, 9], 10**6)
    assert list(got.values()) == [
        replace(one, sequence=n, arrived=12.5) for n, one in enumerate(sent, start=7)
    ]


def test_a_page_takes_what_fits_and_a_larger_event_is_alone(db: sqlite3.Connection) -> None:
    room = PAGE_BYTES - 600
    half, whole = (event(n, bytes(size)) for n, size in ((1, room // 2 - 60), (2, room - 60)))
    larger = event(3, bytes(room + 1))
    assert append(db, STREAM, 1, [half, half, half, whole, larger, half], 1.0) == 5
    assert firsts(db) == [1, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "head",
    [
        '["s", "t"]',
        "no json",
        '["s", "t", [7, 14]]',
        '[["s", "s"], "t", [7, 14, 21]]',
        '["s", ["t", "t"], [7, 14, 21]]',
        '["s", ["t", "t", 3], [7, 14, 21]]',
        '[["s", "s", 3], "t", [7, 14, 21]]',
        '["s", "t", [7, "14", 21]]',
    ],
)
def test_a_block_that_nobody_here_wrote_so_is_named_by_its_events(db: sqlite3.Connection, head: str) -> None:
    three_blocks(db)
    db.execute(f"UPDATE {blocks(STREAM)} SET head = ? WHERE first = 4", (head,))
    assert read_blocks(db, STREAM, 1, 2)[1].first == 3
    with pytest.raises(BusError, match=f"^events 4 to 6 of {STREAM} were changed by another program"):
        read_blocks(db, STREAM, 5)


@pytest.mark.parametrize(
    ("sequence", "limit", "expected"),
    [(1, None, [1, 3, 4]), (2, None, [1, 3, 4]), (3, 1, [3]), (5, None, [4]), (6, 2, [4]), (7, None, [])],
)
def test_blocks_are_read_from_the_one_that_holds_a_sequence(
    db: sqlite3.Connection, sequence: int, limit: int | None, expected: list[int]
) -> None:
    three_blocks(db)
    assert [one.first for one in read_blocks(db, STREAM, sequence, limit)] == expected


def test_a_sequence_that_went_is_none_and_the_next_block_is_no_stand_in(db: sqlite3.Connection) -> None:
    three_blocks(db)
    db.execute(f"DELETE FROM {blocks(STREAM)} WHERE first IN (1, 4)")
    found = read_events(db, STREAM, [1, 2, 3, 4, 9], 10**6)
    assert {n: one and one.sequence for n, one in found.items()} == {1: None, 2: None, 3: 3, 4: None, 9: None}


@pytest.mark.parametrize(("limit", "read"), [(7, 1), (8, 2), (14, 2), (15, 3)])
def test_reading_stops_with_the_event_that_reaches_the_limit(
    db: sqlite3.Connection, limit: int, read: int
) -> None:
    append(db, STREAM, 1, events(4), 1.0)  # 7 bytes each
    assert len(read_events(db, STREAM, [1, 2, 3, 4], limit)) == read


def test_the_first_sequence_since_a_time_counts_that_moment(db: sqlite3.Connection) -> None:
    assert (first_sequence(db, SPEC), last_sequence(db, STREAM), sequence_at(db, STREAM, 0.0)) == (1, 0, 1)
    three_blocks(db)
    assert [sequence_at(db, STREAM, at) for at in (0.0, 10.0, 10.1, 20.0, 30.0, 30.1)] == [1, 1, 3, 3, 4, 7]
    assert [first_sequence(db, replace(SPEC, max_count=n)) for n in (1, 6, 7)] == [6, 1, 1]


def test_deleting_keeps_the_rest_and_counts_each_event_once(db: sqlite3.Connection) -> None:
    three_blocks(db)
    others = read_events(db, STREAM, [1, 3, 4, 6], 10**6)
    gone = [event(n).id for n in (2, 5)]
    assert erase(db, STREAM, [*gone, "no id"]) == 2
    assert erase(db, STREAM, [*gone, event(6).id]) == 1
    del others[6]
    assert read_events(db, STREAM, others, 10**6) == others
    assert set(read_events(db, STREAM, [2, 5, 6], 10**6).values()) == {None}
    assert (firsts(db), last_sequence(db, STREAM)) == ([1, 3, 4], 6)
    assert b"event 5" not in b"".join(row[0] for row in db.execute(f"SELECT body FROM {blocks(STREAM)}"))


@pytest.mark.parametrize(
    ("now", "max_count", "limit", "kept", "more"),
    [
        (110.0, None, 9, [1, 3, 4], False),
        (110.1, None, 9, [3, 4], False),
        (125.0, None, 1, [3, 4], True),
        (125.0, None, 2, [4], True),
        (125.0, None, 3, [4], False),
        (50.0, 5, 9, [1, 3, 4], False),
        (50.0, 4, 9, [3, 4], False),
        (50.0, 3, 9, [4], False),
        (50.0, 1, 9, [4], False),
    ],
)
def test_a_block_goes_when_all_of_it_is_too_old_or_too_many(
    db: sqlite3.Connection, now: float, max_count: int | None, limit: int, kept: list[int], more: bool
) -> None:
    three_blocks(db)
    assert expire(db, replace(SPEC, max_count=max_count), now, limit) is more
    assert firsts(db) == kept
    assert read_events(db, STREAM, [6], 10**6)[6] is not None


def test_the_newest_block_that_is_too_old_is_emptied_and_its_sequence_stays(db: sqlite3.Connection) -> None:
    three_blocks(db)
    assert expire(db, SPEC, 131.0, 9) is False
    assert firsts(db) == [4]
    assert last_sequence(db, STREAM) == 6
    assert [read_events(db, STREAM, [n], 10**6)[n] for n in (4, 5, 6)] == [None] * 3
    assert [one.next for one in read_blocks(db, STREAM, 4)] == [7]


def test_blocks_from_the_future_go_with_the_first_present_one_that_is_too_old(db: sqlite3.Connection) -> None:
    for first, at in ((1, 5000.0), (2, 10.0), (3, 6000.0), (4, 50.0), (5, 90.0)):
        append(db, STREAM, first, [event(first)], at)
    expire(db, SPEC, 110.0, 9)
    assert firsts(db) == [1, 2, 3, 4, 5]
    expire(db, SPEC, 111.0, 9)
    assert firsts(db) == [3, 4, 5]


@pytest.mark.parametrize(("age_s", "known"), [(DEDUPE_S - 1, [1, 2, 3]), (DEDUPE_S + 1, [None, None, 3])])
def test_ids_of_the_last_hour_are_learned_from_the_file(
    db: sqlite3.Connection, age_s: float, known: list[int | None]
) -> None:
    append(db, STREAM, 1, events(2, start=1), 0.0)
    append(db, STREAM, 3, [event(3)], age_s)
    ids = RecentIds(STREAM)
    ids.catch_up(db, age_s)
    keys = [bytes.fromhex(event(n).id.replace("-", "")) for n in (1, 2, 3, 4)]
    assert [ids.find(db, key, age_s) for key in keys] == [*known, None]
    assert not ids.has_none_of(keys)
    assert ids.has_none_of(keys[3:])
    append(db, STREAM, 4, [event(4)], age_s)
    ids.catch_up(db, age_s)
    assert ids.find(db, keys[3], age_s) == 4
