"""What holds for the bus in a file beyond the contract: time, space, damage and sudden ends."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.buses import (
    REWARD,
    STREAM,
    SUBJECT,
    Clock,
    EmbeddedPlace,
    bytes_in,
    drain,
    event,
    events,
    texts,
)
from support.connections import is_closed

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.production.bus.embedded import bus as embedded_module
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.embedded.file import BUS, PAGE_BYTES, blocks, open_file
from pytest_tfgrpo.production.bus.protocol import ACK_WAIT_S, DEDUPE_S, MAX_PENDING, Bus
from pytest_tfgrpo.production.bus.streams import DEAD, STREAMS
from pytest_tfgrpo.storage.database import DatabaseKind
from pytest_tfgrpo.storage.event_store import TablePut

DAY_S = 86400.0


@pytest.fixture
def clock(embedded: EmbeddedPlace) -> Clock:
    embedded.clock = clock = Clock()
    return clock


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


@pytest.mark.usefixtures("durable")
def test_what_is_published_is_on_disk_when_that_returns(tmp_path: Path) -> None:
    """SQLite flushes the log at each commit, and not only at a checkpoint."""
    with closing(open_file(tmp_path / "bus.db", STREAMS)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone()[0] >= 2
    with closing(BUS.connect(tmp_path / "bus.db")) as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] >= 2


# time


def test_nothing_counts_as_stored_in_a_file_that_was_moved_deleted_or_replaced(tmp_path: Path) -> None:
    path, moved = tmp_path / "bus.db", tmp_path / "moved.db"
    with closing(open_embedded(path)) as bus:
        bus.publish([event(1)])
        path.rename(moved)
        with pytest.raises(BusError, match=r"bus\.db' was moved or deleted while this process used it"):
            bus.publish([event(2)])
        path.write_bytes(moved.read_bytes())
        with pytest.raises(BusError, match="was moved or deleted"):
            bus.publish([event(2)])
        path.unlink()
        moved.rename(path)
        bus.publish([event(2)])
        assert bus.last(STREAM) == 2


def test_an_id_is_stored_again_after_an_hour(embedded: EmbeddedPlace, clock: Clock) -> None:
    bus = embedded.open()
    bus.publish([event(1)])
    for _ in range(7):
        clock.now += DEDUPE_S / 8
        assert bus.publish([event(1)]) == [1]
        assert embedded.open().publish([event(1)]) == [1]
    clock.now += DEDUPE_S / 8
    assert bus.publish([event(1)]) == [2]
    assert embedded.open().publish([event(1)]) == [2]


def test_an_id_that_came_late_in_its_part_of_the_hour_is_known_for_a_whole_one(
    embedded: EmbeddedPlace, clock: Clock
) -> None:
    bus = embedded.open()
    bus.publish([event(1)])
    clock.now += DEDUPE_S / 4 - 1
    bus.publish([event(2)])
    clock.now += DEDUPE_S - 2
    assert bus.publish([event(3)]) == [3]
    assert bus.publish([event(2)]) == [2]


def test_a_repeat_beside_new_events_and_twice_in_one_call_is_stored_once(bus: Bus) -> None:
    assert bus.publish([event(1), event(1, subject=REWARD), event(2), event(1)]) == [1, 1, 2, 1]
    assert bus.publish([event(3), event(2)]) == [3, 2]


def test_a_clock_that_goes_back_delays_no_delivery(embedded: EmbeddedPlace, clock: Clock) -> None:
    bus = embedded.open()
    bus.publish(events(1))
    consumer = bus.consumer(STREAM, "one")
    assert len(consumer.fetch(1, 0)) == 1
    clock.now -= DAY_S
    (again,) = consumer.fetch(1, 0)
    assert again.attempts == 2
    assert consumer.fetch(1, 0) == []
    clock.now += ACK_WAIT_S
    assert consumer.fetch(1, 0)[0].attempts == 3
    bus.publish(events(1, start=1))
    assert bus.publish(events(2)) == [1, 2]


def test_what_nobody_settles_comes_again_after_thirty_seconds(embedded: EmbeddedPlace, clock: Clock) -> None:
    bus = embedded.open()
    bus.publish(events(1))
    consumer = bus.consumer(STREAM, "one")
    consumer.fetch(1, 0)
    clock.now += ACK_WAIT_S - 1
    assert consumer.fetch(1, 0) == []
    clock.now += 1
    assert len(consumer.fetch(1, 0)) == 1


# retention


def limited(folder: Path, clock: Clock, **limits: float) -> EmbeddedPlace:
    """Return a place whose trajectories have other limits."""
    streams = tuple(replace(s, **limits) if s.name == STREAM else s for s in STREAMS)  # type: ignore[arg-type]
    place = EmbeddedPlace(folder, streams)
    place.clock = clock
    return place


def test_what_is_too_many_goes_oldest_first(tmp_path: Path) -> None:
    place = limited(tmp_path, Clock(), max_count=100)
    bus = place.open()
    late = bus.consumer(STREAM, "late")
    for start in range(0, 1000, 50):
        bus.publish([event(n, b"%05d" % n * 400) for n in range(start, start + 50)])
    kept = [e.sequence for e in bus.replay(STREAM)]
    assert kept == list(range(901, 1001))
    assert late.lag() == 100
    assert [e.sequence for e in drain(late)] == kept
    place.close()
    assert bytes_in(tmp_path, b"00001" * 400) == []
    assert (tmp_path / "bus.db").stat().st_size < 2_000_000


def test_what_is_too_old_goes_and_its_sequences_do_not_come_again(tmp_path: Path) -> None:
    clock = Clock()
    place = limited(tmp_path, clock, max_age_s=DAY_S)
    bus = place.open()
    bus.publish([event(1, b"too old in the end" * 5000), event(2)])
    consumer = bus.consumer(STREAM, "one")
    consumer.fetch(1, 0)
    clock.now += DAY_S + 1
    assert bus.publish(events(3, start=10)) == [3, 4, 5]
    assert [e.sequence for e in bus.replay(STREAM)] == [3, 4, 5]
    assert [e.sequence for e in drain(consumer)] == [3, 4, 5]
    clock.now += DAY_S + 1
    bus.publish([event(1, subject=REWARD)])
    place.close()
    again = limited(tmp_path, clock, max_age_s=DAY_S)
    assert again.open().publish([event(99)]) == [6]
    again.close()


def test_what_a_clock_that_was_ahead_stamped_goes_with_what_came_after_it(tmp_path: Path) -> None:
    clock = Clock()
    place = limited(tmp_path, clock, max_age_s=DAY_S)
    bus = place.open()
    clock.now += 1000 * DAY_S
    bus.publish([event(1)])
    clock.now -= 1000 * DAY_S
    assert [e.sequence for e in bus.replay(STREAM)] == [1]
    bus.publish([event(2)])
    clock.now += DAY_S - 1
    bus.publish([event(3)])
    assert [e.sequence for e in bus.replay(STREAM)] == [1, 2, 3]
    clock.now += 2
    bus.publish([event(4)])
    assert [e.sequence for e in bus.replay(STREAM)] == [3, 4]
    place.close()


def test_streams_that_nobody_writes_to_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_tfgrpo.production.bus.embedded import writer as embedded_writer

    clock = Clock()
    place = limited(tmp_path, clock, max_age_s=DAY_S)
    first = place.open()
    first.publish([event(n, b"a secret that is too old" + bytes(PAGE_BYTES)) for n in range(40)])
    first.close()
    clock.now += DAY_S + 1
    monkeypatch.setattr(embedded_writer, "_SWEEP_S", 0.02)
    bus = place.open()
    until = time.monotonic() + 100
    while list(bus.replay(STREAM)) and time.monotonic() < until:
        time.sleep(0.01)
    assert list(bus.replay(STREAM)) == []
    assert bus.last(STREAM) == 40
    while bytes_in(tmp_path, b"a secret that is too old") and time.monotonic() < until:
        time.sleep(0.01)
    assert bytes_in(tmp_path, b"a secret that is too old") == []
    bus.close()


def test_what_a_sweep_let_go_of_leaves_the_disk_once_nobody_reads_it_any_more(tmp_path: Path) -> None:
    clock = Clock()
    place = limited(tmp_path, clock, max_age_s=DAY_S)
    place.open().publish([event(n, b"a secret that is too old" + bytes(PAGE_BYTES)) for n in range(40)])
    place.close()
    clock.now += DAY_S + 1
    bus = place.open()
    assert isinstance(bus, embedded_module.EmbeddedBus)
    with closing(BUS.connect(place.path)) as reader:
        reader.execute("BEGIN")
        reader.execute(f"SELECT count(*) FROM {blocks(STREAM)}").fetchone()
        bus._writer._sweep()
        assert list(bus.replay(STREAM)) == []
        assert bytes_in(tmp_path, b"a secret that is too old") != []
    bus._writer._sweep()
    assert bytes_in(tmp_path, b"a secret that is too old") == []
    bus.close()


# consumers


def test_a_consumer_has_only_so_much_in_hand(bus: Bus) -> None:
    for start in range(0, MAX_PENDING + 500, 1500):
        bus.publish([event(n, b"x") for n in range(start, start + 1500)])
    consumer = bus.consumer(STREAM, "one")
    got = consumer.fetch(MAX_PENDING + 500, 0)
    assert len(got) == MAX_PENDING
    assert consumer.fetch(10, 0.05) == []
    consumer.ack(got[:7])
    assert len(consumer.fetch(10, 0)) == 7


def test_a_fetch_of_large_events_returns_some_of_them(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_tfgrpo.production.bus.embedded import consumer as embedded_consumer

    monkeypatch.setattr(embedded_consumer, "FETCH_BYTES", 250_000)
    bus.publish([event(n, bytes(100_000)) for n in range(7)])
    consumer = bus.consumer(STREAM, "one")
    assert [len(consumer.fetch(100, 0)) for _ in range(4)] == [3, 3, 1, 0]


def test_what_went_or_was_deleted_while_it_was_delivered_is_no_lag(tmp_path: Path) -> None:
    place = limited(tmp_path, clock := Clock(), max_age_s=DAY_S)
    bus = place.open()
    bus.publish(events(2))
    consumer = bus.consumer(STREAM, "one")
    assert len(consumer.fetch(2, 0)) == 2
    clock.now += DAY_S - ACK_WAIT_S
    bus.publish(events(1, start=2))
    assert consumer.lag() == 3
    clock.now += 2 * ACK_WAIT_S
    bus.publish(events(1, start=3))
    assert texts(list(drain(consumer))) == ["event 2", "event 3"]
    assert consumer.lag() == 0
    place.close()


# tables


def test_the_removal_of_a_row_that_never_was_is_no_change(bus: Bus) -> None:
    table, watch = bus.table("state"), bus.table("state").watch()
    table.put("a", b"1", 0)
    assert [one.key for one in watch.changes(0)] == ["a"]
    table.remove("b", 0)
    assert watch.changes(0) == []
    table.remove("a", table.get("a")[1])
    assert [(one.key, one.value) for one in watch.changes(0)] == [("a", None)]
    assert bus.table("state").watch().changes(0) == []


def test_the_mark_of_a_removed_row_goes_after_an_hour(embedded: EmbeddedPlace, clock: Clock) -> None:
    table = embedded.open().table("state")

    def remove(key: str) -> None:
        table.remove(key, table.put(key, b"1", 0))

    def marks() -> list[str]:
        with closing(sqlite3.connect(embedded.path)) as db:
            return [row[0] for row in db.execute("SELECT key FROM rows WHERE value IS NULL ORDER BY key")]

    remove("a")
    clock.now += 3600
    remove("b")
    assert marks() == ["a", "b"]
    clock.now += 1
    remove("c")
    assert marks() == ["b", "c"]


# deletion


def test_whatever_is_deleted_is_nowhere_in_the_file(embedded: EmbeddedPlace) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    print(f"seed {seed}")
    bus, table = embedded.open(), embedded.open().table("state")
    marks = {n: f"<secret {n} {chance.getrandbits(64):x}>".encode() for n in range(300)}
    for start in range(0, 300, 20):
        part = range(start, start + 20)
        bus.publish([event(n, marks[n] * chance.choice((1, 5, 40, 400, 4000))) for n in part])
    gone = chance.sample(sorted(marks), 120)
    for start in range(0, 120, 30):
        assert bus.delete(STREAM, [event(n).id for n in gone[start : start + 30]]) == 30
    rows = {f"key.{n}": table.put(f"key.{n}", b"<old row %d>" % n * 200, 0) for n in range(30)}
    for key, revision in rows.items():
        table.put(key, b"new", revision)
    table.remove("key.0", table.get("key.0")[1])
    whole = b"".join(path.read_bytes() for path in embedded.folder.iterdir())
    assert [n for n in gone if marks[n] in whole] == []
    assert b"<old row" not in whole
    assert [e.data[: len(marks[e.sequence - 1])] for e in bus.replay(STREAM)] == [
        mark for n, mark in marks.items() if n not in gone
    ]


def test_an_id_that_is_none_deletes_nothing(bus: Bus) -> None:
    bus.publish(events(1))
    assert bus.delete(STREAM, ["", "no id", "%", event(5).id]) == 0
    assert bus.delete(STREAM, []) == 0
    assert texts(list(bus.replay(STREAM))) == ["event 0"]


def test_a_reader_that_keeps_the_log_from_being_emptied_is_an_error(
    embedded: EmbeddedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BUS, "busy_s", 0.05)
    bus = embedded.open()
    bus.publish(events(2))
    reader = sqlite3.connect(embedded.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute(f"SELECT count(*) FROM {blocks(STREAM)}").fetchone()
    with pytest.raises(BusError, match=r"another process reads it.*delete it again then"):
        bus.delete(STREAM, [event(0).id])
    reader.execute("COMMIT")
    reader.close()
    bus.delete(STREAM, [event(0).id])
    assert bytes_in(embedded.folder, b"event 0") == []


@pytest.mark.parametrize("broken", ["reader", "writer"])
def test_a_bus_that_cannot_be_opened_leaves_no_connection_open(
    broken: str, embedded: EmbeddedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    connect = DatabaseKind.connect

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("too many open files")

    def keep(kind: DatabaseKind, path: Path) -> sqlite3.Connection:
        if opened and broken == "reader":
            fail()
        opened.append(connect(kind, path))
        return opened[-1]

    monkeypatch.setattr(DatabaseKind, "connect", keep)
    if broken == "writer":
        monkeypatch.setattr(embedded_module, "GroupWriter", fail)
    with pytest.raises(BusError, match="too many open files"):
        embedded.open()
    assert len(opened) == 1 + (broken == "writer")
    assert all(map(is_closed, opened))


# transactions


def test_a_refused_row_leaves_events_and_other_rows_unwritten(bus: Bus) -> None:
    table = bus.table("state")
    puts = [TablePut(key=key, value=b"1", revision=0) for key in ("a", "b", "a")]
    with pytest.raises(RevisionConflict):
        bus.publish([event(1)], puts)
    assert table.list() == {}
    assert bus.last(STREAM) == 0


def test_a_call_that_is_refused_fails_no_other_that_waits_with_it(embedded: EmbeddedPlace) -> None:
    bus = embedded.open()
    stale = [TablePut(key="a", value=b"", revision=7)]

    def call(number: int) -> str:
        try:
            bus.publish([event(number)], stale if number % 2 else ())
        except RevisionConflict:
            return "refused"
        return "stored"

    with ThreadPoolExecutor(32) as pool:
        outcomes = list(pool.map(call, range(200)))
    assert outcomes == ["stored", "refused"] * 100
    assert {e.id for e in bus.replay(STREAM)} == {event(n).id for n in range(0, 200, 2)}


def test_publishers_that_wait_together_share_a_transaction(embedded: EmbeddedPlace) -> None:
    bus = embedded.open()
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda n: bus.publish([event(n)]), range(640)))
    with sqlite3.connect(embedded.path) as db:
        (transactions,) = db.execute(f"SELECT count(DISTINCT first) FROM {blocks(STREAM)}").fetchone()
    db.close()
    assert transactions < 320


# the file


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_file_is_for_its_owner_alone(embedded: EmbeddedPlace, umask: int) -> None:
    before = os.umask(umask)
    try:
        bus = embedded.open()
    finally:
        os.umask(before)
    bus.publish(events(1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in embedded.folder.iterdir()}
    assert modes == {0o600}


def test_an_empty_file_becomes_a_bus(embedded: EmbeddedPlace) -> None:
    embedded.path.touch()
    embedded.open().publish(events(1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a database, but some text" * 100, "file is not a database; it is left as it is"),
        ("other", "is a database of another program"),
        ("newer", "has version 99, and this release reads up to 1"),
        ("user_version = 1", "is a database of another program"),
        ("application_id = 7", "is a database of another program"),
    ],
)
def test_a_file_that_is_no_bus_is_left_as_it_is(tmp_path: Path, content: bytes | str, message: str) -> None:
    path = tmp_path / "bus.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA {content}" if "=" in content else "CREATE TABLE t (x)")
        if content == "newer":
            db.execute(f"PRAGMA application_id = {BUS.application}")
            db.execute("PRAGMA user_version = 99")
        db.commit()
        db.close()
    before = path.read_bytes()
    with pytest.raises(BusError, match=message):
        open_embedded(path)
    assert path.read_bytes() == before


def test_a_damaged_page_is_an_error_that_says_what_to_do(embedded: EmbeddedPlace) -> None:
    bus = embedded.open()
    for number in range(20):
        bus.publish([event(number, bytes(PAGE_BYTES * 3))])
    bus.close()
    with embedded.path.open("r+b") as file:
        for page in range(3, 30):
            file.seek(page * PAGE_BYTES)
            file.write(b"\xff" * 5000)
    with pytest.raises(BusError, match="restore a copy"):
        list(embedded.open().replay(STREAM))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("SQLITE_BUSY_SNAPSHOT", "another process has held it"),
        ("SQLITE_LOCKED", "another process has held it"),
        ("SQLITE_FULL", "free space"),
        ("SQLITE_IOERR_WRITE", "free space"),
        ("SQLITE_CORRUPT_INDEX", "restore a copy"),
        ("SQLITE_NOTADB", "restore a copy"),
        ("SQLITE_READONLY_DIRECTORY", "make it writable for this user"),
        ("SQLITE_CANTOPEN", "make it writable for this user"),
        ("SQLITE_PERM", "make it writable for this user"),
        ("SQLITE_MISUSE", "nothing of the transaction is kept"),
    ],
)
def test_an_error_of_sqlite_says_what_to_do(name: str, advice: str, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = name
    with pytest.raises(BusError, match=f"it failed; .*{advice}"), BUS.advised(tmp_path / "bus.db"):
        raise error


def test_a_place_where_no_file_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "bus.db", tmp_path / "file" / "bus.db", tmp_path):
        with pytest.raises(BusError, match=f"embedded bus '{path}'"):
            open_embedded(path)


def test_a_file_that_another_process_holds_is_an_error(
    embedded: EmbeddedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BUS, "busy_s", 0.05)
    bus = embedded.open()
    other = sqlite3.connect(embedded.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusError, match="another process has held it"):
        bus.publish(events(1))
    other.execute("ROLLBACK")
    other.close()
    assert bus.publish(events(1)) == [1]


def test_what_waits_is_stored_before_the_bus_closes(embedded: EmbeddedPlace) -> None:
    bus = embedded.open()
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(bus.publish, [event(n)]) for n in range(100)]
        bus.close()
        stored = [n for n, call in enumerate(calls) if call.exception() is None]
        refused = {str(error) for call in calls if (error := call.exception()) is not None}
    assert refused <= {f"embedded bus {str(embedded.path)!r} is closed"}
    assert {e.id for e in embedded.open().replay(STREAM)} == {event(n).id for n in stored}


def test_dead_letters_count_like_other_events(bus: Bus) -> None:
    bus.publish([event(1, subject=SUBJECT)])
    consumer = bus.consumer(STREAM, "one")
    consumer.bury(consumer.fetch(1, 0), "schema", "no")
    undertaker = bus.consumer(DEAD, "look")
    assert [e.sequence for e in drain(undertaker)] == [1]
