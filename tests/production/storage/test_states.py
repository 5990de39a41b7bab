"""Tables of states, and states that outlast a process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.buses import BusPlace, texts
from support.job_states import JOB_STREAM, JOBS, NOON, jobs

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import BusEvent, TablePut
from pytest_tfgrpo.storage.kept_states import KeptStates
from pytest_tfgrpo.storage.states import StateTable


def go(states: KeptStates[str, str], key: str, *triggers: str) -> None:
    for trigger in triggers:
        taken = states.take(states.at(key), trigger, time=NOON, data=f"{key} {trigger}".encode())
        assert taken == states.at(key)


def published(bus: Bus) -> list[str]:
    return texts(list(bus.replay(JOB_STREAM)))


def test_a_table_knows_where_a_trigger_leads_and_what_is_final() -> None:
    assert JOBS.after("queued", "start") == "running"
    assert JOBS.after("completed", "cancel") is None
    assert JOBS.final == {"completed", "cancelled"}


def test_a_transition_is_kept_with_its_owner_and_the_event_that_it_owes(place: BusPlace, bus: Bus) -> None:
    go(jobs(bus), "a", "request", "start", "lose")
    after_restart = jobs(place.open(), "two").at("a")
    assert (after_restart.state, after_restart.owner) == ("queued", "one")
    assert published(bus) == ["a request", "a start"], "one of them owes none"


def test_what_the_table_does_not_have_stores_nothing(bus: Bus) -> None:
    states = jobs(bus)
    go(states, "a", "request")
    before = states.at("a")
    assert states.take(before, "finish", time=NOON, data=b"a finish") is None
    assert (states.at("a"), states.at("b").state, published(bus)) == (before, "", ["a request"])


def test_of_two_who_look_at_once_one_goes_on(place: BusPlace, bus: Bus) -> None:
    one, two = jobs(bus, "one"), jobs(place.open(), "two")
    go(one, "a", "request")
    seen, same = one.at("a"), two.at("a")
    assert two.take(same, "start", time=NOON, data=b"two starts") is not None
    assert one.take(seen, "start", time=NOON, data=b"one starts") is None
    assert one.take(seen, "cancel", time=NOON, data=b"one cancels") is None
    assert (one.at("a").owner, published(bus)) == ("two", ["a request", "two starts"])


def test_who_lost_a_job_cannot_end_it(place: BusPlace, bus: Bus) -> None:
    one, two = jobs(bus, "one"), jobs(place.open(), "two")
    go(one, "a", "request", "start")
    lost = one.at("a")
    go(two, "a", "lose", "start")
    assert one.take(lost, "finish", time=NOON, data=b"") is None, "it is running again, but elsewhere"
    assert (two.at("a").state, two.at("a").owner) == ("running", "two")


def test_processes_that_want_all_jobs_at_once_share_them(place: BusPlace, bus: Bus) -> None:
    keys = [f"j{n}" for n in range(12)]
    for key in keys:
        go(jobs(bus), key, "request")

    def work(owner: str) -> set[str]:
        states = jobs(place.open(), owner)
        seen = [states.at(key) for key in keys]
        return {
            at.key for at in seen if at.state == "queued" and states.take(at, "start", time=NOON, data=b"s")
        }

    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(work, "abcd"))
    assert sorted(key for mine in started for key in mine) == sorted(keys)
    owners = {jobs(bus).at(key).owner: None for key in keys}
    assert owners.keys() == {owner for owner, mine in zip("abcd", started, strict=True) if mine}


def test_an_event_that_the_store_refuses_keeps_the_state(bus: Bus) -> None:
    table = StateTable({("", "request"): ("queued", "no.such.subject")})
    with pytest.raises(BusError, match=r"no\.such\.subject"):
        go(jobs(bus, table=table), "a", "request")
    assert jobs(bus).at("a").state == ""


class Torn:
    """A store that dies between the events and the rows of one call."""

    atomic = False

    def __init__(self, bus: Bus) -> None:
        self.bus, self.table = bus, bus.table

    def publish(self, events: Sequence[BusEvent], puts: Sequence[TablePut] = ()) -> list[int]:
        self.bus.publish(events)
        raise BusError("the server went away")


def test_an_event_whose_state_was_not_stored_is_not_there_twice(bus: Bus) -> None:
    with pytest.raises(BusError, match="went away"):
        go(jobs(Torn(bus)), "a", "request")
    go(jobs(bus), "a", "request")
    assert published(bus) == ["a request"]


def test_another_who_goes_on_at_once_fences_the_one_who_took_the_state(place: BusPlace, bus: Bus) -> None:
    one, two = jobs(bus, "one"), jobs(place.open(), "two")
    go(one, "a", "request")
    look = one.at

    def overtaken(key: str):  # type: ignore[no-untyped-def]
        go(two, key, "lose", "start")
        return look(key)

    seen = look("a")
    one.at = overtaken  # type: ignore[method-assign]
    mine = one.take(seen, "start", time=NOON, data=b"one starts")
    assert mine is not None
    assert one.take(mine, "finish", time=NOON, data=b"one finishes") is None


def test_a_transition_that_happens_again_owes_its_event_again(bus: Bus) -> None:
    go(jobs(bus), "a", "request", "start", "lose", "start", "lose", "start", "finish")
    assert published(bus) == ["a request", "a start", "a start", "a start", "a finish"]


@pytest.mark.parametrize(
    "value", [b"{", b"[]", b"7", b'["gone", "one"]', b'[["a"], "one"]', b'["queued", 1]']
)
def test_a_row_that_is_damaged_is_named_and_left_alone(bus: Bus, value: bytes) -> None:
    bus.table("state").put("job.a", value, 0)
    for look in (lambda: jobs(bus).at("a"), lambda: jobs(bus).listed()):
        with pytest.raises(
            BusError, match=r"the row 'job\.a' of the table state holds no state and owner, but b"
        ):
            look()
    assert bus.table("state").get("job.a")[0] == value
