"""Requests from the stream: queued, or dead with a code."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.buses import BusPlace
from support.feedback.training import asked, payload, states

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import STREAMS
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request_intake import LOST, RequestIntake


def dead(bus: Bus) -> list[tuple[str, str]]:
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    return [(one.code, one.message) for one in letters]


def test_requests_are_queued_and_bad_ones_are_dead_with_a_code(embedded: BusPlace) -> None:
    bus = embedded.open()
    jobs = TrainingJobs(bus, "one")
    intake = RequestIntake(bus, jobs)
    again = asked(payload(requester="another"))
    sample = payload()
    sample["training_job_id"] = "job-001"
    bus.publish([asked(payload()), asked(sample), again, asked(b"no JSON")])
    while intake.step():
        pass
    assert [job.id for job in jobs.listed()] == [derived_id("job", "one")]
    assert [code for code, _ in dead(bus)] == ["schema", "duplicate_data", "schema"]
    assert dead(bus)[0][1].startswith("/training_job_id: ")
    assert states(bus) == ["queued"]
    RequestIntake(bus, jobs).step()
    assert len(dead(bus)) == 3


@pytest.fixture
def small(embedded: BusPlace) -> Iterator[Bus]:
    """Return a bus whose stream of training keeps ten events."""
    streams = tuple(replace(one, max_count=10) if one.name == "RL_TRAINING" else one for one in STREAMS)
    bus = open_embedded(embedded.folder / "small.db", streams)
    yield bus
    bus.close()


def test_a_full_stream_loses_no_request_that_was_read(small: Bus) -> None:
    jobs = TrainingJobs(small, "one")
    intake = RequestIntake(small, jobs)
    for number in range(15):
        small.publish([asked(payload(str(number)))])
        intake.step()
    assert len(list(small.replay("RL_TRAINING"))) <= 10
    assert {job.id for job in jobs.listed()} == {derived_id("job", str(n)) for n in range(15)}
    assert dead(small) == []


def test_what_a_full_stream_lost_before_anyone_read_it_is_said_once(small: Bus) -> None:
    jobs = TrainingJobs(small, "one")
    intake, other = RequestIntake(small, jobs), RequestIntake(small, TrainingJobs(small, "two"))
    small.publish([asked(payload("first"))])
    intake.step()
    read = small.last("RL_TRAINING")  # with the status of its job
    while intake.step():
        pass
    small.publish([asked(payload(str(number))) for number in range(15)])
    for one in (intake, other, intake, other):
        while one.step():
            pass
    said = f"RL_TRAINING let go of its events {read + 1} to {read + 5} before a service read them; "
    assert dead(small) == [(LOST, said + "requests among them have no job: ask again")]
    assert len(jobs.listed()) == 11


def test_two_services_share_the_requests(embedded: BusPlace) -> None:
    bus, other = embedded.open(), embedded.open()
    bus.publish([asked(payload(str(number))) for number in range(60)])
    intakes = [RequestIntake(one, TrainingJobs(one, name)) for one, name in ((bus, "a"), (other, "b"))]
    taken = [sum(one.step() for one in intakes) for _ in range(3)]
    assert sum(taken) >= 60
    assert len(TrainingJobs(bus, "c").listed()) == 60
    assert dead(bus) == []


@pytest.mark.parametrize("kind", [b"", b"null"])
def test_an_empty_event_is_dead(embedded: BusPlace, kind: bytes) -> None:
    bus = embedded.open()
    bus.publish([asked(kind)])
    RequestIntake(bus, TrainingJobs(bus, "one")).step()
    assert [code for code, _ in dead(bus)] == ["schema"]


@pytest.mark.parametrize(
    ("read", "held", "lost"),
    [
        (3, [9, 12], "4 to 8"),
        (3, [15], "4 to 11"),
        (3, [], "4 to 11"),
        (11, [12], ""),
        (3, [4], ""),
        (3, [5], "4 to 4"),
    ],
)
def test_what_the_stream_let_go_of_is_what_is_neither_read_nor_there(
    read: int, held: list[int], lost: str
) -> None:
    """The stream may have let go of more since the events at hand were fetched: from 12 on."""
    said, kept = list[str](), dict[str, bytes]({"read": b"%d" % read})
    rows = SimpleNamespace(
        get=lambda key: (kept[key], 1), put=lambda key, value, _: kept.update({key: value}) or 2
    )
    intake = RequestIntake.__new__(RequestIntake)
    intake._rows = rows  # type: ignore[assignment]
    intake._bus = SimpleNamespace(  # type: ignore[assignment]
        replay=lambda _: (SimpleNamespace(sequence=n) for n in held),
        publish=lambda events: said.extend(dead_letter_of(one).message for one in events),
    )
    time = "2026-01-01T12:00:00Z"
    intake._note([SimpleNamespace(sequence=n, time=time) for n in (12, 13)])  # type: ignore[misc]
    assert [one.split(" before")[0].split("events ")[1] for one in said] == [lost][: bool(lost)]
    assert kept["read"] == b"13"
