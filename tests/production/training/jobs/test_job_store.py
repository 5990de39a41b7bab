"""The queue: order, duplicates, transitions and what they owe."""

import json
from dataclasses import replace

import pytest
from support.buses import BusPlace
from support.feedback.training import asked, payload, request, states, statuses

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs import job_store
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob, TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import read_request
from pytest_tfgrpo.production.training.jobs.states import JOBS
from pytest_tfgrpo.storage.event_store import BusEvent, change

DONE = {"artifacts": {"final_checkpoint": "library.json"}}


@pytest.fixture
def jobs(embedded: BusPlace) -> TrainingJobs:
    return TrainingJobs(embedded.open(), "one")


def known(jobs: TrainingJobs, name: str = "one") -> TrainingJob:
    found = jobs.find(derived_id("job", name))
    assert found is not None
    return found


def test_the_table_ends_in_three_states_and_leaves_none_of_them() -> None:
    assert JOBS.final == {"completed", "failed", "cancelled"}
    assert {state for state, _ in JOBS.rows} == {"", "queued", "running"}
    assert all(subject == "agent.rl.training.status.v1" for _, subject in JOBS.rows.values())


def test_each_transition_owes_a_status_which_is_the_newest_of_the_job(embedded: BusPlace) -> None:
    jobs = TrainingJobs(embedded.open(), "one")
    assert jobs.submit(request()) == ""
    running = jobs.take(known(jobs), "start", {})
    assert running is not None
    assert jobs.take(running, "finish", DONE) is not None
    assert states(embedded.open()) == ["queued", "running", "completed"]
    assert known(jobs).status == statuses(embedded.open())[-1]
    assert (known(jobs).started, known(jobs).ended) == (running.status["timestamp"], True)


def test_urgent_comes_first_then_who_came_first(jobs: TrainingJobs) -> None:
    order = ["low", "normal", "urgent", None, "high", "urgent"]
    for number, priority in enumerate(order):
        more = {} if priority is None else {"priority": priority}
        jobs.submit(request(str(number), **more))
    assert [job.id for job in jobs.listed()] == [derived_id("job", one) for one in "254130"]


def test_an_id_is_used_once_and_an_event_may_come_again(jobs: TrainingJobs) -> None:
    event = replace(asked(payload()), sequence=3)
    assert jobs.add(event, request()) == ""
    assert jobs.add(event, request()) == ""
    assert "a job" in jobs.add(asked(payload(), 2), request())
    assert "a job" in jobs.submit(request(requester="another"))
    assert [(job.order, job.state) for job in jobs.listed()] == [(3, "queued")]


def test_a_watermark_is_used_once_unless_its_job_failed(jobs: TrainingJobs) -> None:
    mark = {"metadata": {"watermark": {"RL_TRAJECTORIES": 7}}}
    other = {"metadata": {"watermark": {"RL_TRAJECTORIES": 8}}}
    assert [jobs.submit(request(name, **mark)) for name in "ab"][1].startswith(
        f"job {derived_id('job', 'a')} has the same watermark"
    )
    assert jobs.add(asked(payload("b", **mark)), request("b", **mark)) != ""
    assert jobs.submit(request("c", **other)) == ""
    jobs.cancel(derived_id("job", "a"))
    assert jobs.submit(request("d", **mark)) == ""
    assert jobs.submit(request("e", **mark)) != ""
    assert jobs.submit(request("f")) == jobs.submit(request("g")) == ""


def test_cancel_ends_what_waits_and_asks_whoever_runs_it(jobs: TrainingJobs) -> None:
    assert jobs.cancel(derived_id("nobody")) is None
    jobs.submit(request("a"))
    jobs.submit(request("b"))
    assert jobs.cancel(derived_id("job", "a")) == jobs.cancel(derived_id("job", "a")) == "cancelled"
    jobs.take(known(jobs, "b"), "start", {})
    assert jobs.cancel(derived_id("job", "b")) == "running"
    assert known(jobs, "b").stopping
    assert not known(jobs, "a").stopping


def test_who_lost_a_job_cannot_end_it(embedded: BusPlace) -> None:
    one, two = (TrainingJobs(embedded.open(), owner) for owner in ("one", "two"))
    one.submit(request())
    mine = one.take(known(one), "start", {})
    assert mine is not None
    assert two.take(known(two), "resume", {}) is not None
    assert one.take(mine, "finish", DONE) is None
    assert states(embedded.open()) == ["queued", "running", "running"]
    assert known(one).at.owner == "two"


class Torn:
    """A bus that dies before it stores a transition."""

    def __init__(self, bus: Bus) -> None:
        self.bus, self.table = bus, bus.table

    def publish(self, events: list[BusEvent], puts: object = ()) -> list[int]:
        if puts:
            raise OSError("the power is gone")
        return self.bus.publish(events)


def test_a_death_between_the_row_and_the_state_changes_nothing(embedded: BusPlace) -> None:
    torn = TrainingJobs(Torn(embedded.open()), "one")  # type: ignore[arg-type]
    event = replace(asked(payload()), sequence=1)
    with pytest.raises(OSError, match="power"):
        torn.add(event, request())
    whole = TrainingJobs(embedded.open(), "two")
    assert (known(whole).state, known(whole).status["status"]) == ("", "queued")
    assert whole.add(event, request()) == ""
    whole.take(known(whole), "start", {})
    with pytest.raises(OSError, match="power"):
        torn.take(known(torn), "finish", DONE)
    assert (known(whole).state, known(whole).status["status"]) == ("running", "running")
    assert "artifacts" not in known(whole).status
    assert states(embedded.open()) == ["queued", "running"]


def test_the_oldest_ended_jobs_are_forgotten(jobs: TrainingJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_store, "MOST_ENDED", 2)
    mark = {"metadata": {"watermark": {"RL_TRAJECTORIES": 7}}}
    for name in "abcd":
        jobs.submit(request(name, **(mark if name == "a" else {})))
    for name in "acd":
        running = jobs.take(known(jobs, name), "start", {})
        assert running is not None
        assert jobs.take(running, "finish", DONE) is not None
    assert {job.id for job in jobs.listed()} == {derived_id("job", name) for name in "bcd"}
    assert jobs.submit(request("a", **mark)) == ""


def test_the_secrets_of_a_request_are_not_kept(jobs: TrainingJobs, scrubber) -> None:  # type: ignore[no-untyped-def]
    found = read_request(payload(metadata={"notes": "ask anna@example.com"}), scrubber)
    jobs.submit(found)  # type: ignore[arg-type]
    assert "anna@example" not in str(known(jobs).request.payload)
    assert "[redacted:email:" in str(known(jobs).request.payload)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("order", "1"),
        ("event", None),
        ("request", []),
        ("status", "queued"),
        ("spent", "1"),
        ("stopping", 1),
        ("request.training_job_id", derived_id("job", "two")),
        ("request.priority", "at once"),
        ("request.training_config", {}),
        ("request.timestamp", 7),
    ],
)
def test_a_row_that_is_damaged_is_named_with_its_key(jobs: TrainingJobs, key: str, value: object) -> None:
    jobs.submit(request())
    id_ = derived_id("job", "one")

    def damaged(row: bytes | None) -> bytes:
        whole = json.loads(row or b"")
        *outer, name = key.split(".")
        (whole[outer[0]] if outer else whole)[name] = value
        return json.dumps(whole).encode()

    change(jobs._rows, f"job.{id_}", damaged)
    wanted = rf"the row 'job\.{id_}' of the table training holds no job: key '{key}' is .*; put the bus back"
    for look in (lambda: jobs.find(id_), jobs.listed, lambda: jobs.note_cut(id_, {})):
        with pytest.raises(BusError, match=wanted):
            look()


def test_a_row_that_is_no_json_is_named(jobs: TrainingJobs) -> None:
    jobs.submit(request())
    change(jobs._rows, f"job.{derived_id('job', 'one')}", lambda _: b"[1]")
    with pytest.raises(BusError, match=r"holds no job: it is b'\[1\]'"):
        jobs.listed()
    change(jobs._rows, f"job.{derived_id('job', 'one')}", lambda _: b"{")
    with pytest.raises(BusError, match="holds no job: "):
        jobs.listed()
