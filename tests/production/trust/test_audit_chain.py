"""The chain of the audit: what it finds, and what it does not hold against anybody."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.buses import Clock, EmbeddedPlace, event

from pytest_tfgrpo.core.errors import BusError, SettingError
from pytest_tfgrpo.production.bus.chain import NOTHING, linked, previous_of, record_hash
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT, AUDIT_SUBJECT, DAY_S
from pytest_tfgrpo.production.trust.audit_chain import (
    AuditChain,
    ChainHead,
    head_of,
    verify_audit,
    verify_records,
)
from pytest_tfgrpo.production.trust.audit_records import note, read_ref
from pytest_tfgrpo.storage.event_store import BusEvent, TablePut


def record(number: int, **said: object) -> BusEvent:
    """Return a record of the audit that is not stored yet."""
    data = json.dumps({"action": "forget", "what": "user", "n": number, **said}).encode()
    return event(number, data, AUDIT_SUBJECT)


def chain(count: int) -> list[BusEvent]:
    """Return so many records, each linked to the one before."""
    found: list[BusEvent] = []
    for number in range(1, count + 1):
        found.append(replace(linked(record(number), found[-1] if found else None), sequence=number))
    return found


def where(found: AuditChain) -> tuple[int, str] | None:
    """Return the place and the id of what is broken."""
    return None if found.broken is None else (found.broken.sequence, found.broken.id)


def test_each_record_holds_the_hash_of_the_one_before_however_they_are_published(bus: Bus) -> None:
    bus.publish([record(1), event(1), record(2)])
    bus.publish([record(3)], [TablePut(key="row", value=b"1", revision=0)])
    note(bus, "read", "trajectory", actor="ada", ref="x")
    records = list(bus.replay(AUDIT))
    hashes = [NOTHING, *map(record_hash, records[:-1])]
    assert [json.loads(one.data)["previous"] for one in records] == hashes
    said = json.loads(records[-1].data)
    assert {key: said[key] for key in said if key != "previous"} == {
        "action": "read", "what": "trajectory", "actor": "ada", "ref": "x",
    }  # fmt: skip
    found = verify_audit(bus)
    assert (found.count, found.gone, found.unlinked, found.broken) == (4, 0, 0, None)
    assert found.head == ChainHead(4, record_hash(records[-1]))


def test_a_repeat_is_stored_once_and_the_chain_goes_on(embedded: EmbeddedPlace) -> None:
    first, other = embedded.open(), embedded.open()
    assert first.publish([record(1), record(2)]) == [1, 2]
    assert other.publish([record(2), record(3), record(3)]) == [2, 3, 3]
    assert verify_audit(first).count == 3
    assert verify_audit(first).broken is None


def test_writers_that_share_a_file_do_not_fork_it(embedded: EmbeddedPlace) -> None:
    buses = [embedded.open(), embedded.open()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: buses[number % 2].publish([record(number)]), range(60)))
    found = verify_audit(buses[0])
    assert (found.count, found.broken) == (60, None)


def test_a_record_that_is_no_object_is_refused_with_all_that_comes_with_it(bus: Bus) -> None:
    for data in (b"[1]", b"{", b"", b"{}"):
        with pytest.raises(BusError, match="must be a JSON object"):
            bus.publish([event(1), record(2), replace(record(3), data=data)])
    assert (bus.last(AUDIT), bus.last("RL_TRAJECTORIES")) == (0, 0)


@pytest.mark.parametrize(
    ("spoil", "expected", "says"),
    [
        (lambda records: records, None, ""),
        (lambda all_: [*all_[:3], replace(all_[3], data=all_[4].data), *all_[4:]], 4, "changed"),
        (lambda records: [*records[:3], changed(records[3]), *records[4:]], 4, "record 5 was written after"),
        (lambda records: [changed(records[0]), *records[1:]], 1, "record 2 was written after"),
        (lambda all_: [*all_[:3], replace(all_[3], time="2025-01-01T00:00:00Z"), *all_[4:]], 4, "5"),
        (lambda records: [*records[:3], replace(records[3], id=records[0].id), *records[4:]], 4, "record 5"),
        (lambda records: [*records[:2], *records[4:]], 3, "is missing, like all up to 4, though"),
        (lambda records: [*records[:3], *records[4:]], 4, "is missing though"),
        (lambda records: records[:-1], 6, "is missing though"),
        (lambda records: [*records[:3], record(9), *records[4:]], 0, ""),
        (lambda all_: [replace(one, sequence=n) for n, one in enumerate(all_[1:], 1)], 1, "written again"),
    ],
)  # fmt: skip
def test_the_first_broken_record_is_named(
    spoil: Callable[[list[BusEvent]], list[BusEvent]], expected: int | None, says: str
) -> None:
    spoilt = spoil(chain(6))
    if expected == 0:  # another program's record, which holds no hash
        spoilt[3], expected, says = replace(spoilt[3], sequence=4), 4, "another program wrote it"
    last = 5 if "again" in says else 6
    found = verify_records(spoilt, last)
    if expected is None:
        assert found.broken is None
        return
    assert found.broken is not None
    assert found.broken.sequence == expected
    assert says in str(found.broken)
    there = [one for one in spoilt if one.sequence == expected]
    assert (found.broken.id, found.broken.time) == ((there[0].id, there[0].time) if there else ("", ""))


def changed(one: BusEvent) -> BusEvent:
    """Return a record that says something else and still holds the hash of the one before."""
    return replace(one, data=one.data.replace(b'"user"', b'"nobody"'))


def test_a_chain_may_begin_with_any_record_and_says_so() -> None:
    found = verify_records(chain(6)[3:], 6)
    assert (found.count, found.gone, found.broken) == (3, 3, None)
    assert verify_records([], 6).gone == 6
    none = verify_records([], 0)
    assert (none.count, none.gone, none.head, none.broken) == (0, 0, None, None)


def test_retention_takes_the_beginning_and_breaks_nothing(embedded: EmbeddedPlace) -> None:
    embedded.clock = clock = Clock()
    bus = embedded.open()
    for number in range(4):
        bus.publish([record(number)])
        clock.now += 100 * DAY_S
    bus.publish([record(4)])
    found = verify_audit(bus)
    assert (found.gone, found.count, found.broken) == (1, 4, None)
    clock.now += 400 * DAY_S
    bus.publish([record(5)])
    clock.now += 1.0
    bus.publish([record(6)])
    found = verify_audit(bus)
    assert (found.gone, found.count, found.broken) == (5, 2, None)


def test_a_deletion_is_a_hole(bus: Bus) -> None:
    bus.publish([record(number) for number in range(5)])
    bus.delete(AUDIT, [record(2).id])
    assert where(verify_audit(bus)) == (3, "")
    bus.publish([record(5)])
    assert where(verify_audit(bus)) == (3, "")
    bus.delete(AUDIT, [record(number).id for number in (0, 1, 3, 4)])
    assert verify_audit(bus).broken is None, "of those before the first nobody knows"


def test_the_newest_cannot_be_deleted_unnoticed(bus: Bus) -> None:
    bus.publish([record(number) for number in range(5)])
    bus.delete(AUDIT, [record(4).id])
    assert where(verify_audit(bus)) == (5, "")


def test_records_from_before_the_chain_are_counted_and_the_last_of_them_is_covered() -> None:
    old = [replace(record(number), sequence=number) for number in (1, 2, 3)]
    new = replace(linked(record(4), old[-1]), sequence=4)
    assert (verify_records([*old, new], 4).unlinked, where(verify_records([*old, new], 4))) == (3, None)
    assert where(verify_records([*old[:2], changed(old[2]), new], 4)) == (3, old[2].id)
    foreign = replace(record(5), sequence=5)
    assert where(verify_records([*old, new, foreign], 5)) == (5, foreign.id), "once there is a chain"


def test_an_anchor_shows_a_chain_that_was_made_again() -> None:
    records = chain(6)
    anchor = ChainHead(4, record_hash(records[3]))
    assert head_of(str(anchor)) == head_of(f" {anchor}\n") == anchor
    assert verify_records(records, 6, anchor).anchored is True
    again = [records[0]]
    for one in records[1:]:  # whoever can write all can link all
        again.append(replace(linked(changed(one), again[-1]), sequence=one.sequence))
    assert verify_records(again, 6).broken is None
    assert where(verify_records(again, 6, anchor)) == (4, records[3].id)
    assert where(verify_records(records[:3], 3, anchor)) == (4, "")
    assert where(verify_records([], 0, anchor)) == (1, "")
    late = verify_records(records[4:], 6, anchor)
    assert (late.anchored, late.broken) == (False, None)
    for text in ("", "4", "0:" + "a" * 64, "4:" + "A" * 64, "4:" + "a" * 63, "4:" + "a" * 65):
        with pytest.raises(SettingError, match="must be a head such as"):
            head_of(text)


def test_what_stands_for_a_trajectory_that_was_read_is_one_however_its_id_is_written() -> None:
    key = record(1).id
    assert read_ref(key.upper()) == read_ref(key) != read_ref(record(2).id)
    assert key not in read_ref(key)


def test_no_record_says_itself_which_one_is_before_it() -> None:
    forged = replace(record(2), data=b'{"action": "read", "previous": "abc"}')
    assert [previous_of(linked(forged, one)) for one in (None, record(1))] == [
        NOTHING,
        record_hash(record(1)),
    ]
