"""What holds for every bus."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

import pytest
from support.buses import (
    REWARD,
    REWARDS,
    SHORT,
    STREAM,
    BusPlace,
    bytes_in,
    drain,
    event,
    events,
    texts,
)

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES, Bus
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.storage.event_store import TablePut


def test_what_was_published_is_replayed_in_order_and_unchanged(bus: Bus) -> None:
    sent = [
        event(1, b'{"text": "gr\xc3\xbc\xc3\x9fe"}'),
        event(2, bytes(range(256))),
        replace(event(3), data=b""),
        event(4, b"x" * 100_000),
    ]
    assert bus.publish(sent) == [1, 2, 3, 4]
    got = list(bus.replay(STREAM))
    assert [(e.id, e.subject, e.time, e.data, e.sequence) for e in got] == [
        (e.id, e.subject, e.time, e.data, n) for n, e in enumerate(sent, 1)
    ]
    assert bus.last(STREAM) == 4


def test_a_stream_has_sequences_of_its_own(bus: Bus) -> None:
    assert bus.publish([event(1), event(2, subject=REWARD), event(3)]) == [1, 1, 2]
    assert texts(list(bus.replay(REWARDS))) == ["event 2"]
    assert bus.last(DEAD) == 0


def test_an_id_is_stored_once_and_keeps_its_sequence(place: BusPlace) -> None:
    bus = place.open()
    assert bus.publish([event(1), event(2)]) == [1, 2]
    assert bus.publish([event(2, b"again"), event(3), event(3, b"twice")]) == [2, 3, 3]
    assert place.open().publish([event(1, b"elsewhere"), event(4)]) == [1, 4]
    assert texts(list(bus.replay(STREAM))) == ["event 1", "event 2", "event 3", "event 4"]


def test_what_was_published_is_there_after_the_bus_is_closed(place: BusPlace) -> None:
    bus = place.open()
    bus.publish(events(3))
    bus.table("state").put("a", b"1", 0)
    bus.close()
    again = place.open()
    assert len(list(again.replay(STREAM))) == 3
    assert again.table("state").get("a")[0] == b"1"


def test_a_replay_starts_at_a_sequence_or_a_time(bus: Bus) -> None:
    bus.publish(events(5))
    time.sleep(0.01)
    between = time.time()
    time.sleep(0.01)
    bus.publish(events(2, start=5))
    assert [e.sequence for e in bus.replay(STREAM, since_sequence=4)] == [4, 5, 6, 7]
    assert [e.sequence for e in bus.replay(STREAM, since_time=between)] == [6, 7]
    assert list(bus.replay(STREAM, since_time=time.time() + 60)) == []
    assert [e.sequence for e in bus.replay(STREAM, since_sequence=7, since_time=between)] == [7]
    assert list(bus.replay(STREAM, since_sequence=8)) == []


def test_a_replay_ends_with_what_was_there_when_it_began(bus: Bus) -> None:
    bus.publish(events(2))
    replay = bus.replay(STREAM)
    bus.publish(events(2, start=2))
    assert len(list(replay)) == 2


def test_a_replay_of_thousands_is_complete(bus: Bus) -> None:
    for start in range(0, 3000, 1000):
        bus.publish([event(n, b"%d" % n * 50) for n in range(start, start + 1000)])
    assert [e.sequence for e in bus.replay(STREAM)] == list(range(1, 3001))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"subject": "agent.rl.unknown.v1"}, "no stream takes the subject 'agent.rl.unknown.v1'"),
        ({"subject": "agent.rl.>"}, "no stream takes"),
        ({"id": "1234"}, "'1234' is no UUID"),
        ({"id": "A" * 36}, "is no UUID"),
        ({"id": "AAAAAAAA-aaaa-4aaa-8aaa-aaaaaaaaaaaa"}, "is no UUID"),
        ({"id": "aaaaaaaa-aaaa-4aaa-8aaaaaaaaaaaaaaa-"}, "is no UUID"),
        ({"time": "1" * 65}, "is not RFC 3339"),
        ({"time": "today\r\nX: 1"}, "is not RFC 3339"),
        ({"data": b"x" * (MAX_EVENT_BYTES + 1)}, "1,000,001 bytes"),
        ({"data": "text"}, "not bytes"),
    ],
)
def test_an_event_that_no_bus_takes_is_refused_with_all_beside_it(
    bus: Bus, bad: dict[str, str], message: str
) -> None:
    with pytest.raises(BusError, match=message):
        bus.publish([event(1), replace(event(2), **bad)])  # type: ignore[arg-type]
    assert list(bus.replay(STREAM)) == []


def test_the_largest_event_is_taken(bus: Bus) -> None:
    bus.publish([event(1, b"x" * MAX_EVENT_BYTES)])
    assert len(next(iter(bus.replay(STREAM))).data) == MAX_EVENT_BYTES


def test_an_unknown_stream_is_an_error_that_lists_the_streams(bus: Bus) -> None:
    with pytest.raises(BusError, match="no stream 'X'; there are RL_SPANS, RL_TRAJECTORIES"):
        bus.replay("X")


# consumers


def test_a_consumer_gets_each_event_once(bus: Bus) -> None:
    bus.publish(events(5))
    consumer = bus.consumer(STREAM, "one")
    first = consumer.fetch(2, 100)
    assert [(e.sequence, e.attempts) for e in first] == [(1, 1), (2, 1)]
    assert [e.id for e in first] == [e.id for e in events(2)]
    consumer.ack(first)
    assert [e.sequence for e in drain(consumer)] == [3, 4, 5]
    assert consumer.fetch(1, 0) == []
    assert consumer.lag() == 0


def test_a_consumer_goes_on_where_it_was_in_another_process(place: BusPlace) -> None:
    bus = place.open()
    bus.publish(events(3))
    consumer = bus.consumer(STREAM, "one")
    consumer.ack(consumer.fetch(2, 100))
    bus.close()
    assert texts(list(drain(place.open().consumer(STREAM, "one"), 1))) == ["event 2"]


def test_consumers_of_different_names_get_everything_each(bus: Bus) -> None:
    bus.publish(events(3))
    assert len(list(drain(bus.consumer(STREAM, "one"), 1))) == 3
    assert len(list(drain(bus.consumer(STREAM, "two"), 1))) == 3


def test_workers_share_the_events_of_a_consumer(place: BusPlace) -> None:
    bus = place.open()
    bus.publish(events(200))

    def work(_: int) -> list[int]:
        consumer, found = place.open().consumer(STREAM, "shared"), []
        while got := consumer.fetch(10, 0.3):
            found += [e.sequence for e in got]
            consumer.ack(got)
        return found

    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(work, range(3)))
    assert Counter(chain.from_iterable(parts)) == Counter(range(1, 201))


def test_a_fetch_waits_for_what_another_process_publishes(place: BusPlace) -> None:
    consumer = place.open().consumer(STREAM, "one")
    other = place.open()
    later = threading.Timer(0.1, other.publish, ([event(7)],))
    later.start()
    assert texts(consumer.fetch(10, 100)) == ["event 7"]
    later.join()


def test_what_is_not_acknowledged_comes_again(bus: Bus) -> None:
    bus.publish(events(2))
    consumer = bus.consumer(STREAM, "one", ack_wait_s=SHORT)
    consumer.ack(consumer.fetch(2, 100)[:1])
    assert consumer.lag() == 1
    again = consumer.fetch(2, 100)
    assert [(e.sequence, e.attempts) for e in again] == [(2, 2)]
    consumer.ack(again)
    assert consumer.fetch(1, 2 * SHORT) == []


def test_what_one_consumer_settles_or_gives_back_is_nothing_to_another(bus: Bus) -> None:
    bus.publish(events(3))
    one, two = (bus.consumer(STREAM, name, ack_wait_s=100.0) for name in ("one", "two"))
    mine, theirs = one.fetch(3, 100), two.fetch(2, 100)
    assert [(e.sequence, e.attempts) for e in theirs] == [(1, 1), (2, 1)]
    two.nak(theirs)
    assert one.fetch(3, 0) == []
    two.ack(two.fetch(2, 100))
    assert (one.lag(), two.lag()) == (3, 1)
    two.bury(two.fetch(1, 100), "schema", "no")
    assert (one.lag(), two.lag()) == (3, 0)
    one.nak(mine)
    assert two.fetch(3, 0) == []
    assert [(e.sequence, e.attempts) for e in one.fetch(3, 100)] == [(1, 2), (2, 2), (3, 2)]


def test_a_name_is_one_consumer_in_each_stream(bus: Bus) -> None:
    bus.publish([event(1), event(2, subject=REWARD), event(3)])
    one, other = bus.consumer(STREAM, "one"), bus.consumer(REWARDS, "one")
    assert texts(one.fetch(9, 100)) == ["event 1", "event 3"]
    assert texts(other.fetch(9, 100)) == ["event 2"]
    assert (one.lag(), other.lag()) == (2, 1)


def test_all_that_is_buried_at_once_is_a_letter_each_and_settled(bus: Bus) -> None:
    bus.publish(events(3))
    consumer = bus.consumer(STREAM, "one")
    consumer.bury(consumer.fetch(3, 100)[1:], "schema", "no")
    assert [dead_letter_of(e).id for e in bus.replay(DEAD)] == [e.id for e in events(2, start=1)]
    assert consumer.lag() == 1


def test_what_is_given_back_comes_again_after_its_delay(bus: Bus) -> None:
    bus.publish(events(2))
    consumer = bus.consumer(STREAM, "one")
    one, two = consumer.fetch(2, 100)
    consumer.nak([one])
    consumer.nak([two], delay_s=SHORT)
    assert [(e.sequence, e.attempts) for e in consumer.fetch(2, 100)] == [(1, 2)]
    assert [(e.sequence, e.attempts) for e in consumer.fetch(2, 100)] == [(2, 2)]


def test_an_event_that_nobody_settles_is_a_dead_letter_after_five_deliveries(bus: Bus) -> None:
    bus.publish([event(1, b"poison"), event(2)])
    consumer = bus.consumer(STREAM, "one")
    for attempt in range(1, 6):
        got = {e.sequence: e for e in consumer.fetch(2, 100)}
        assert got[1].attempts == attempt
        consumer.ack([e for e in got.values() if e.sequence == 2])
        consumer.nak([got[1]])
    assert consumer.fetch(2, 0.1) == []
    (dead,) = bus.replay(DEAD)
    letter = dead_letter_of(dead)
    assert (letter.code, letter.stream, letter.consumer, letter.attempts) == (
        "max_deliveries",
        STREAM,
        "one",
        5,
    )
    assert (letter.id, letter.data, letter.size) == (event(1).id, b"poison", 6)
    assert consumer.lag() == 0


def test_a_consumer_buries_what_it_cannot_use(bus: Bus) -> None:
    bus.publish([event(1, b"x" * MAX_EVENT_BYTES), event(2)])
    consumer = bus.consumer(STREAM, "one")
    got = consumer.fetch(1, 100)
    consumer.bury(got, "schema", "no task at /task_context")
    consumer.bury(got, "schema", "no task at /task_context")  # as after a crash between
    (dead,) = bus.replay(DEAD)
    letter = dead_letter_of(dead)
    assert (letter.code, letter.message) == ("schema", "no task at /task_context")
    assert letter.size == MAX_EVENT_BYTES > len(letter.data) > MAX_EVENT_BYTES - 1000
    assert texts(list(drain(consumer, 0.1))) == ["event 2"]


# delete


def test_a_deleted_event_is_nowhere_on_disk(place: BusPlace) -> None:
    bus = place.open()
    secrets = [f"the secret of event {n}, which has to go" for n in range(50)]
    sent = [event(n, text.encode()) for n, text in enumerate(secrets)]
    bus.publish(sent[:20])
    bus.publish(sent[20:])
    assert bus.delete(STREAM, [sent[3].id, sent[20].id, sent[49].id, event(99).id]) == 3
    kept = [text for n, text in enumerate(secrets) if n not in (3, 20, 49)]
    assert texts(list(bus.replay(STREAM))) == kept
    assert texts(list(drain(bus.consumer(STREAM, "one"), 1))) == kept
    assert bus.delete(STREAM, [sent[3].id]) == 0
    for number in (3, 20, 49):
        assert bytes_in(place.folder, secrets[number].encode()) == []
    assert bytes_in(place.folder, secrets[4].encode()) != []


def test_a_deleted_event_is_not_stored_again_by_a_late_repeat(bus: Bus) -> None:
    bus.publish(events(2))
    bus.delete(STREAM, [event(0).id])
    assert bus.publish([event(0)]) == [1]
    assert texts(list(bus.replay(STREAM))) == ["event 1"]


def test_a_deleted_event_that_was_delivered_does_not_come_again(bus: Bus) -> None:
    bus.publish(events(2))
    consumer = bus.consumer(STREAM, "one", ack_wait_s=SHORT)
    consumer.fetch(2, 100)
    bus.delete(STREAM, [event(0).id])
    assert texts(consumer.fetch(2, 100)) == ["event 1"]


# tables


def test_a_row_is_written_by_who_read_it_last(place: BusPlace) -> None:
    mine, theirs = place.open().table("state"), place.open().table("state")
    assert mine.get("lease") == (None, 0)
    first = mine.put("lease", b"me", 0)
    with pytest.raises(RevisionConflict, match="'lease' is at revision"):
        theirs.put("lease", b"they", 0)
    second = theirs.put("lease", b"they", first)
    assert second > first
    assert mine.get("lease") == (b"they", second)
    with pytest.raises(RevisionConflict):
        mine.put("lease", b"me", first)


def test_of_many_writers_one_wins(place: BusPlace) -> None:
    bus = place.open()

    def count(_: int) -> None:
        table = place.open().table("state")
        for _ in range(5):
            while True:
                value, revision = table.get("n")
                try:
                    table.put("n", b"%d" % (int(value or b"0") + 1), revision)
                    break
                except RevisionConflict:
                    continue

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count, range(3)))
    assert bus.table("state").get("n")[0] == b"15"


def test_rows_are_listed_by_prefix(bus: Bus) -> None:
    table = bus.table("state")
    revisions = {key: table.put(key, key.encode(), 0) for key in ("a.1", "a.2", "b.1", "ab")}
    bus.table("other").put("a.3", b"", 0)
    assert table.list("a.") == {key: (key.encode(), revisions[key]) for key in ("a.1", "a.2")}
    assert sorted(table.list()) == ["a.1", "a.2", "ab", "b.1"]
    assert table.list("c") == {}


def test_a_removed_row_is_gone_and_may_come_back(place: BusPlace) -> None:
    table = place.open().table("state")
    revision = table.put("a", b"a value that has to go", 0)
    with pytest.raises(RevisionConflict):
        table.remove("a", revision + 1)
    with pytest.raises(RevisionConflict):
        table.remove("a", 0)
    table.remove("a", revision)
    table.remove("a", 0)
    table.remove("never-there", 0)
    assert table.get("a") == (None, 0)
    assert table.list() == {}
    assert bytes_in(place.folder, b"a value that has to go") == []
    assert table.put("a", b"new", 0) > revision


def test_a_watch_sees_what_is_there_and_what_changes(place: BusPlace) -> None:
    table, other = place.open().table("state"), place.open().table("state")
    revision = table.put("a.1", b"1", 0)
    table.put("b", b"not watched", 0)
    watch = other.watch("a.")
    assert [(row.key, row.value) for row in watch.changes(100)] == [("a.1", b"1")]
    assert watch.changes(0) == []
    later = threading.Timer(0.1, table.put, ("a.1", b"2", revision))
    later.start()
    (changed,) = watch.changes(100)
    assert (changed.key, changed.value) == ("a.1", b"2")
    later.join()
    table.remove("a.1", changed.revision)
    (removed,) = watch.changes(100)
    assert (removed.key, removed.value) == ("a.1", None)
    watch.close()


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "ä", "a\n", "x" * 600])
def test_a_key_that_some_bus_cannot_hold_is_refused(bus: Bus, key: str) -> None:
    with pytest.raises(BusError, match="the table key"):
        bus.table("state").put(key, b"", 0)


def test_the_longest_keys_and_names_are_taken(bus: Bus) -> None:
    key = f"a=/-_.{'x' * 506}"
    table = bus.table("t" * 64)
    assert table.put(key, b"1", 0) == table.get(key)[1]
    with pytest.raises(BusError, match="at most 512 characters"):
        table.get(f"{key}x")
    bus.publish([event(1)])
    assert texts(bus.consumer(STREAM, "c" * 64).fetch(1, 100)) == ["event 1"]


def test_a_row_of_one_table_is_none_of_another(bus: Bus) -> None:
    state, other = bus.table("state"), bus.table("teams")
    watch = state.watch()
    assert watch.changes(0) == []
    revision = other.put("a", b"theirs", 0)
    assert (state.get("a"), state.list(), watch.changes(0)) == ((None, 0), {}, [])
    state.put("a", b"mine", 0)
    assert [(row.key, row.value) for row in watch.changes(0)] == [("a", b"mine")]
    other.remove("a", revision)
    assert (state.get("a")[0], watch.changes(0)) == (b"mine", [])


def test_a_bad_key_of_a_row_leaves_the_events_beside_it_unwritten(bus: Bus) -> None:
    with pytest.raises(BusError, match="the table key"):
        bus.publish([event(1)], [TablePut(key=key, value=b"1", revision=0) for key in ("a", "b c")])
    assert (list(bus.replay(STREAM)), bus.table("state").list()) == ([], {})


@pytest.mark.parametrize("name", ["", "a.b", "a b", ">", "../x", "x" * 65])
def test_a_name_that_some_bus_cannot_hold_is_refused(bus: Bus, name: str) -> None:
    with pytest.raises(BusError, match="is not 1 to 64"):
        bus.table(name)
    with pytest.raises(BusError, match="is not 1 to 64"):
        bus.consumer(STREAM, name)


def test_events_and_rows_are_published_together(bus: Bus) -> None:
    table = bus.table("state")
    bus.publish([event(1)], puts=[TablePut(key="cursor", value=b"1", revision=0)])
    value, revision = table.get("cursor")
    assert value == b"1"
    with pytest.raises(RevisionConflict):
        bus.publish([event(2)], puts=[TablePut(key="cursor", value=b"2", revision=0)])
    assert texts(list(bus.replay(STREAM))) == ["event 1"]
    assert table.get("cursor") == (b"1", revision)


# use


def test_threads_share_a_bus(bus: Bus) -> None:
    def publish(number: int) -> list[int]:
        return [bus.publish([event(number * 100 + n)])[0] for n in range(20)]

    with ThreadPoolExecutor(16) as pool:
        sequences = list(pool.map(publish, range(16)))
    assert sorted(chain.from_iterable(sequences)) == list(range(1, 321))
    assert all(part == sorted(part) for part in sequences)
    assert len(list(bus.replay(STREAM))) == 320


def test_a_closed_bus_says_so(bus: Bus) -> None:
    consumer = bus.consumer(STREAM, "one")
    bus.close()
    for call in (lambda: bus.publish([event(1)]), lambda: consumer.fetch(1, 0), lambda: bus.last(STREAM)):
        with pytest.raises(BusError, match="is closed"):
            call()
    bus.close()
