"""The role that asks: what it counts in the view, and that a watermark is used once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.buses import BusPlace, Clock
from support.feedback.training import payload, request
from support.loop_events import feedback, publish, rewarded, trajectory

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import read_request
from pytest_tfgrpo.production.training.settings import TRIGGERS as NAMES
from pytest_tfgrpo.production.training.triggers.figures import FeedbackCount, figures_of
from pytest_tfgrpo.production.training.triggers.training_triggers import (
    EVERY_S,
    TrainingTriggers,
    last_cut,
    new_request,
)
from pytest_tfgrpo.production.view.view import LoopView


class Watch:
    """Triggers over a bus, under a clock."""

    def __init__(
        self, bus: Bus, folder: Path, clock: Clock, owner: str = "one", wall: Clock | None = None
    ) -> None:
        self.bus, self.clock = bus, clock
        self.view = LoopView(folder / f"{owner}.db", clock)
        self.jobs = TrainingJobs(bus, owner)
        self.role = TrainingTriggers(
            bus, self.view, self.jobs, names=NAMES, threshold=10, clock=clock, wall=wall or clock
        )

    def look(self) -> int:
        self.clock.now += EVERY_S
        return self.role.step()

    def bring(self, start: int, count: int, **more: object) -> None:
        publish(self.bus, [trajectory(f"t{start + n}", **more) for n in range(count)])  # type: ignore[arg-type]


@pytest.fixture
def watch(embedded: BusPlace, tmp_path: Path, clock: Clock) -> Iterator[Watch]:
    found = Watch(embedded.open(), tmp_path, clock)
    with closing(found.view):
        yield found


def end(watch: Watch, trigger: str = "finish") -> None:
    job = next(job for job in watch.jobs.listed() if not job.ended)
    running = watch.jobs.take(job, "start", {})
    assert running is not None
    parts = {"artifacts": {"final_checkpoint": "x"}} if trigger == "finish" else {"error": {"code": "INFRA"}}
    now = datetime.fromtimestamp(watch.clock.now, UTC).isoformat()
    assert watch.jobs.take(running, trigger, parts, utc_time(now) or "") is not None  # type: ignore[arg-type]


def test_the_threshold_asks_once_for_what_is_new(watch: Watch) -> None:
    watch.bring(0, 9)
    assert watch.look() == 0
    watch.bring(9, 1, metadata={"model": "qwen"})
    assert watch.look() == 1
    (job,) = watch.jobs.listed()
    asked = job.request.payload
    assert (asked["trigger_reason"], asked["priority"]) == ("threshold_reached", "normal")
    assert asked["training_config"]["base_model"] == "qwen"
    assert asked["metadata"]["watermark"] == {"RL_TRAJECTORIES": 10, "RL_REWARDS": 0}
    assert read_request(json.loads(json.dumps(asked))) == job.request
    watch.bring(10, 30)
    assert watch.look() == 0, "one job at a time"
    end(watch)
    assert watch.look() == 0, "6 h of rest"
    watch.clock.now += 6 * 3600
    assert watch.look() == 1
    assert last_cut(watch.jobs.listed()) == 40


def test_of_two_services_one_asks_and_the_other_goes_on(
    watch: Watch, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    other = Watch(embedded.open(), tmp_path, clock, "two")
    with closing(other.view):
        watch.bring(0, 10)
        assert [watch.look(), other.look(), watch.look(), other.look()] == [1, 0, 0, 0]
        end(watch, "fail")
        watch.role.close()
        clock.now += 7 * 3600
        assert other.look() == 0, "no new data since it failed"
        other.bring(10, 1)
        assert other.look() == 1


def test_the_daily_one_outlives_a_restart(
    watch: Watch, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    clock.now = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
    watch.bring(0, 1)
    assert watch.look() == 0
    watch.role.close()
    clock.now += timedelta(hours=20).total_seconds()
    again = Watch(embedded.open(), tmp_path, clock, "two")
    with closing(again.view):
        assert again.look() == 1
    assert again.jobs.listed()[0].request.payload["trigger_reason"] == "scheduled"


@pytest.mark.parametrize(
    ("times", "asked"),
    [
        (["10T22:00", "11T09:00", "11T01:00", "11T02:00", "11T09:00"], [1]),  # over it, back, over it again
        (["11T01:59", "11T03:00", "11T01:59", "11T02:01", "11T10:00"], [1]),  # an hour forth, and back
        (["11T01:30", "11T02:30", "11T01:30", "11T02:30", "12T02:00"], [1, 4]),  # the same hour twice
        (["11T01:59", "19T12:00", "11T12:00", "12T02:00", "12T13:00"], [1, 3]),  # days ahead, and set right
        (["10T22:00", "02T02:00", "10T22:00", "11T02:00"], [2, 3]),  # days behind: one that was missed
    ],
)
def test_a_clock_that_jumps_over_two_asks_once(
    embedded: BusPlace, tmp_path: Path, times: list[str], asked: list[int]
) -> None:
    steady, wall = Clock(), Clock()
    services = [Watch(embedded.open(), tmp_path, steady, name, wall) for name in ("one", "two")]
    found = []
    for n, time in enumerate(times):
        wall.now = datetime.fromisoformat(f"2026-03-{time}:00+00:00").timestamp()
        services[0].bring(n, 1)
        steady.now += 60.0
        if sum(one.role.step() for one in services):
            found.append(n)
            job = next(job for job in services[0].jobs.listed() if not job.ended)
            assert job.request.payload["trigger_reason"] == "scheduled"
            services[0].jobs.take(job, "fail", {"error": {"code": "INFRA"}}, "2026-01-01T00:00:00.000Z")
    assert found == asked
    for one in services:
        one.view.close()


def test_a_manual_job_counts_as_a_cut(watch: Watch) -> None:
    watch.bring(0, 20)
    watch.jobs.submit(request())
    watch.jobs.note_cut(payload()["training_job_id"], {"RL_TRAJECTORIES": 15})
    assert last_cut(watch.jobs.listed()) == 15
    end(watch)
    watch.clock.now += 7 * 3600
    assert watch.look() == 0
    watch.bring(20, 5)
    assert watch.look() == 1


def test_what_is_compared_is_the_live_version_with_no_run_in_both(watch: Watch) -> None:
    for n, (version, status) in enumerate(
        [("v1", "failed"), ("v2", "completed_successfully"), ("v2", "failed")]
    ):
        watch.bring(100 * n, 10, metadata={"policy_version": version}, task_status=status)
    evaluator = Evaluator(watch.bus, watch.view, "one", settle_s=0.0)
    while evaluator.step():
        pass
    watch.view.catch_up(watch.bus)
    now = datetime.fromtimestamp(watch.clock.now, UTC)
    found = figures_of(watch.view, now, since=0)
    assert (found.version, found.first.n, found.last.n, found.new) == ("v2", 10, 10, 30)
    assert found.first.mean > found.last.mean + 0.4
    assert figures_of(watch.view, now, since=25, compared=25).last.n == 5
    evaluator.close()


def test_feedback_is_counted_by_day_and_week(watch: Watch) -> None:
    now = datetime.now(UTC)
    kinds = [("thumbs_up", {}), ("thumbs_down", {}), ("rating", {"rating": 2}), ("rating", {"rating": 3})]
    kinds += [("correction", {"text": "no"}), ("abandonment", {}), ("label", {"text": "cat"})]
    said = []
    for hours in (1, 23, 25, 24 * 8 - 1, 24 * 8 + 1):
        at = utc_time((now - timedelta(hours=hours)).isoformat()) or ""
        said += [
            feedback(f"{kind}{n}{hours}", kind, "t0", at=at, **more) for n, (kind, more) in enumerate(kinds)
        ]
    watch.bring(0, 1)
    publish(watch.bus, said)
    watch.view.catch_up(watch.bus)
    found = figures_of(watch.view, now, since=0)
    assert found.day == found.week == FeedbackCount(12, 8)


def test_a_version_that_became_worse_asks_again_only_for_further_runs(watch: Watch) -> None:
    watch.role = TrainingTriggers(
        watch.bus, watch.view, watch.jobs, names=NAMES, threshold=10**6, clock=watch.clock, wall=watch.clock
    )

    def bring(start: int, count: int, total: float) -> None:
        runs = [trajectory(f"t{start + n}") for n in range(count)]
        publish(watch.bus, runs, [rewarded(f"t{start + n}", total) for n in range(count)])

    bring(0, 100, 1.0)
    bring(100, 100, 0.5)
    assert watch.look() == 1
    assert watch.jobs.listed()[0].request.payload["trigger_reason"] == "performance_degradation"
    end(watch)
    bring(200, 99, 0.5)
    assert watch.look() == 0
    bring(299, 1, 0.5)
    assert watch.look() == 1, "urgent, so without rest"


def test_a_request_of_a_person_has_the_time_the_sample_and_the_id_it_is_given() -> None:
    asked = new_request(
        "manual", "high", base_model="small", sample_size=7, timestamp="2026-01-01T12:00:00Z", job_id="j"
    ).payload
    assert (asked["timestamp"], asked["training_job_id"]) == ("2026-01-01T12:00:00Z", "j")
    assert asked["training_config"]["dataset"]["sample_size"] == 7
    assert (asked["requester"], asked["metadata"]) == ("tfgrpo loop train", {"requested_by": "user"})
    bare = new_request("manual", "high", base_model="small").payload
    assert "sample_size" not in bare["training_config"]["dataset"]
    assert bare["timestamp"] > "2026"
