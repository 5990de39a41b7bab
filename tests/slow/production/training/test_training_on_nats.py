"""Training jobs on a server: services that share a queue, and one that is lost."""

from __future__ import annotations

from pathlib import Path

from support.buses import Clock, NatsPlace
from support.feedback.training import FakeStarter, asked, cut, payload, request, states

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.limits import JobLimits
from pytest_tfgrpo.production.training.jobs.openers import job_openers
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan
from pytest_tfgrpo.production.training.jobs.request_intake import RequestIntake
from pytest_tfgrpo.production.training.jobs.runner import TrainingRunner


class Machine:
    """A service with processes that are none."""

    def __init__(self, place: NatsPlace, folder: Path, clock: Clock, owner: str) -> None:
        self.bus, self.clock, self.started = place.open(), clock, FakeStarter()
        self.jobs = TrainingJobs(self.bus, owner)
        self.intake = RequestIntake(self.bus, self.jobs)
        openers = job_openers(PytestPlan(project=folder), (), self.started, LoopScrubber(b"k" * 32))
        self.runner = TrainingRunner(
            self.bus,
            self.jobs,
            folder,
            cut=cut,
            openers=openers,
            limits=JobLimits(timeout_s=1e9),
            clock=clock,
            wall=clock,
        )

    def go(self) -> None:
        self.clock.now += 1.0
        self.intake.step()
        self.runner.step()


def test_services_share_a_queue_and_one_that_is_lost_is_replaced(on_nats: NatsPlace, tmp_path: Path) -> None:
    clock = Clock()
    one, two = (Machine(on_nats, tmp_path, clock, owner) for owner in ("one", "two"))
    bad = {**payload("bad"), "training_job_id": "job-001"}
    one.bus.publish([asked(payload("low", priority="low")), asked(bad), asked(payload("one"))])
    for _ in range(20):
        one.go()
        two.go()
        if one.started.made or two.started.made:
            break
    first, second = (one, two) if one.started.made else (two, one)
    assert [len(first.started.made), len(second.started.made)] == [1, 0]
    assert derived_id("job", "one") in first.started.made[0].flag("--tfgrpo-out")
    assert [dead_letter_of(event).code for event in one.bus.replay("RL_DEAD")] == ["schema"]
    clock.now += 100
    for _ in range(40):
        second.go()
        if second.started.made:
            break
    assert len(second.started.made) == 1
    for _ in range(40):  # until the server has told it
        first.go()
        if first.started.made[0].signals:
            break
    assert first.started.made[0].signals == ["kill"]
    assert second.jobs.cancel(derived_id("job", "one")) == "running"
    for _ in range(4):
        second.go()
    assert states(one.bus, "one") == ["queued", "running", "running", "cancelled"]
    assert second.jobs.submit(request("low")) != ""
