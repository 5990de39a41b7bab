"""Changing a row that others change too."""

from __future__ import annotations

from support.buses import BusPlace

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import STATE, change


def test_a_row_is_set_replaced_and_removed_and_its_value_before_is_known(bus: Bus) -> None:
    table = bus.table(STATE)
    assert change(table, "a", lambda _: b"1") is None
    assert change(table, "a", lambda known: (known or b"") + b"2") == b"1"
    assert table.get("a")[0] == b"12"
    assert change(table, "a", lambda _: None) == b"12"
    assert (change(table, "a", lambda _: None), table.get("a")[0]) == (None, None)


def test_a_row_that_stays_as_it_is_is_not_written(bus: Bus) -> None:
    table = bus.table(STATE)
    revision = table.put("a", b"1", 0)
    assert change(table, "a", lambda known: known or b"2") == b"1"
    assert table.get("a") == (b"1", revision)


def test_a_change_is_made_to_what_another_made_of_the_row_meanwhile(place: BusPlace, bus: Bus) -> None:
    other, seen = place.open().table(STATE), []

    def count(known: bytes | None) -> bytes:
        seen.append(known)
        if len(seen) < 3:
            change(other, "a", lambda value: b"%d" % (int(value or 0) + 10))
        return b"%d" % (int(known or 0) + 1)

    change(bus.table(STATE), "a", count)
    assert (seen, other.get("a")[0]) == ([None, b"10", b"20"], b"21")
    seen.clear()
    change(bus.table(STATE), "a", lambda known: seen.append(known) or other.remove("a", other.get("a")[1]))
    assert other.get("a")[0] is None
