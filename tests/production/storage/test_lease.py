"""One process at a time does a job."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from support.buses import STREAM, BusPlace, events, texts

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import Lease, lease_holder, lease_state

TTL_S = 10.0


class Stopwatch:
    """A clock of one process, which has nothing to do with another's."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Holder:
    """A process that wants the job, with a clock of its own."""

    bus: Bus
    clock: Stopwatch
    lease: Lease

    def after(self, seconds: float) -> bool:
        """Return whether it holds the lease so much later by its own clock."""
        self.clock.now += seconds
        return self.lease.hold()


def holder(place: BusPlace, owner: str, now: float = 0.0) -> Holder:
    bus, clock = place.open(), Stopwatch(now)
    return Holder(bus, clock, Lease(bus, "work", owner, ttl_s=TTL_S, clock=clock))


@pytest.fixture
def one(place: BusPlace) -> Holder:
    return holder(place, "one", 1e9)


@pytest.fixture
def two(place: BusPlace) -> Holder:
    return holder(place, "two", -50.0)


def test_the_second_waits_as_long_as_the_first_renews(one: Holder, two: Holder) -> None:
    assert one.lease.hold()
    for _ in range(5):
        assert not two.after(TTL_S - 1)
        assert one.after(TTL_S)
    assert not two.after(TTL_S - 1)
    assert one.lease.held
    assert not two.lease.held


def test_a_silent_holder_loses_it_after_the_ttl_by_the_others_own_clock(one: Holder, two: Holder) -> None:
    assert one.lease.hold()
    assert one.lease.publish(events(1), {"place": 1}) == [1]
    assert not two.after(1e6)
    assert not two.after(TTL_S - 0.1)
    assert two.after(0.1)
    assert two.lease.state == {"place": 1}
    assert not one.after(TTL_S)
    assert not one.lease.held


def test_who_lost_it_unnoticed_publishes_nothing(one: Holder, two: Holder) -> None:
    assert one.lease.hold()
    two.lease.hold()
    assert two.after(TTL_S)
    assert two.lease.publish(events(1), {"place": 1}) == [1]
    assert one.lease.held
    assert one.lease.publish(events(3), {"place": 3}) is None
    assert not one.lease.held
    assert texts(list(one.bus.replay(STREAM))) == ["event 0"]
    assert two.lease.publish(events(1, start=1), {"place": 2}) == [2]


def test_what_is_kept_goes_with_the_events_and_on_to_the_next_holder(one: Holder, two: Holder) -> None:
    assert one.lease.hold()
    assert one.lease.state is None
    assert one.lease.publish([], {"place": [1, "\u00fc"]}) == []
    assert one.lease.publish(events(2), {"place": 2}) == [1, 2]
    assert one.lease.state == {"place": 2}
    one.lease.release()
    assert two.lease.hold()
    assert two.lease.state == {"place": 2}
    assert not one.lease.hold()


def test_who_released_it_may_take_it_again_and_releasing_twice_does_no_harm(one: Holder, two: Holder) -> None:
    one.lease.release()
    assert one.lease.hold()
    one.lease.release()
    one.lease.release()
    assert one.lease.hold()
    two.lease.release()
    assert one.after(TTL_S)


def test_a_renewal_after_the_row_was_taken_fails(one: Holder, two: Holder) -> None:
    assert one.lease.hold()
    two.lease.hold()
    assert two.after(TTL_S)
    assert not one.after(TTL_S / 2)
    assert not one.after(TTL_S / 2)
    two.clock.now -= 1000
    assert two.lease.hold()


def test_of_two_that_take_a_silent_ones_row_one_gets_it(place: BusPlace, one: Holder, two: Holder) -> None:
    three = holder(place, "three", 7.0)
    assert one.lease.hold()
    assert (two.lease.hold(), three.lease.hold()) == (False, False)
    for waiting in (two, three):
        waiting.clock.now += TTL_S
    assert [two.lease.hold(), three.lease.hold()] == [True, False]
    assert not three.after(TTL_S - 1)


def test_jobs_have_leases_of_their_own(one: Holder) -> None:
    other = Lease(one.bus, "other", "two", clock=one.clock)
    assert one.lease.hold()
    assert other.hold()
    assert sorted(one.bus.table(STATE).list("lease.")) == ["lease.other", "lease.work"]


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"owner": 1, "state": null}', b'{"owner": "one"}'])
def test_a_row_that_is_damaged_is_named_and_taken_by_nobody(one: Holder, value: bytes) -> None:
    one.bus.table(STATE).put("lease.work", value, 0)
    with pytest.raises(BusError, match=r"the row 'lease\.work' of the table state holds no lease, but b"):
        one.lease.hold()
    assert one.bus.table(STATE).get("lease.work")[0] == value


def test_who_has_a_job_and_what_was_kept_of_it_can_be_seen(one: Holder) -> None:
    table = one.bus.table(STATE)
    assert (lease_holder(table, "work"), lease_state(table, "work")) == ("", None)
    assert one.lease.hold()
    one.lease.publish([], {"place": 3})
    assert (lease_holder(table, "work"), lease_state(table, "work")) == ("one", {"place": 3})
    one.lease.release()
    assert (lease_holder(table, "work"), lease_state(table, "work")) == ("", {"place": 3})


def test_a_lease_is_renewed_after_a_third_of_its_time(one: Holder) -> None:
    table = one.bus.table(STATE)
    assert one.lease.hold()
    first = table.get("lease.work")[1]
    assert one.after(TTL_S / 3 - 0.01)
    assert table.get("lease.work")[1] == first
    assert one.after(0.01)
    assert table.get("lease.work")[1] > first


def test_a_lease_that_cannot_be_let_go_of_runs_out_by_itself(
    one: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert one.lease.hold()
    with monkeypatch.context() as away:
        away.setattr(one.lease, "_table", SimpleNamespace(put=_refuse))
        one.lease.release()
    assert not one.lease.held
    assert lease_holder(one.bus.table(STATE), "work") == "one"


def _refuse(*_: object) -> int:
    raise BusError("the server is away")


def test_what_was_published_stands_though_the_lease_was_taken_meanwhile(one: Holder, two: Holder) -> None:
    """As of a store that is not atomic: another took the row behind the events."""
    assert one.lease.hold()
    stored = one.lease._store.publish

    def overtaken(*given: object) -> list[int]:
        sequences = stored(*given)  # type: ignore[arg-type]
        two.lease.hold()
        assert two.after(TTL_S)
        return sequences

    one.lease._store = SimpleNamespace(publish=overtaken)  # type: ignore[assignment]
    assert one.lease.publish(events(1), {"place": 1}) == [1]
    assert (one.lease.held, two.lease.state) == (False, {"place": 1})
