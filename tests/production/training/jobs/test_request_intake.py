"""Requests from the stream: queued, or dead with a code."""

import pytest
from support.buses import BusPlace
from support.feedback.training import asked, payload, states

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import STREAMS
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request_intake import RequestIntake


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


def test_a_full_stream_loses_no_request_that_was_read(embedded: BusPlace) -> None:
    small = tuple(
        one if one.name != "RL_TRAINING" else type(one)(
            name=one.name, subjects=one.subjects, pattern=one.pattern, max_age_s=one.max_age_s, max_count=10
        )
        for one in STREAMS
    )  # fmt: skip
    bus = open_embedded(embedded.folder / "small.db", small)
    try:
        jobs = TrainingJobs(bus, "one")
        intake = RequestIntake(bus, jobs)
        for number in range(15):
            bus.publish([asked(payload(str(number)))])
            intake.step()
        assert len(list(bus.replay("RL_TRAINING"))) <= 10
        assert {job.id for job in jobs.listed()} == {derived_id("job", str(n)) for n in range(15)}
    finally:
        bus.close()


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
