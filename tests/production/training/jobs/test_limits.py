"""Budgets of a job and of a day, over restarts and midnight."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.buses import BusPlace, Clock
from support.feedback.training import FakeStarter, cut, request, states, statuses

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.report.training_lines import training_figures, training_lines
from pytest_tfgrpo.production.training.jobs import job_store
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.limits import JobLimits, day_usd
from pytest_tfgrpo.production.training.jobs.openers import job_openers
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan
from pytest_tfgrpo.production.training.jobs.run_end import failure
from pytest_tfgrpo.production.training.jobs.runner import TrainingRunner

DAY = "2026-03-10"


@pytest.fixture
def jobs(embedded: BusPlace) -> TrainingJobs:
    return TrainingJobs(embedded.open(), "one")


def limits(**usd: float) -> JobLimits:
    return JobLimits(timeout_s=1.0, **usd)


def spend(jobs: TrainingJobs, name: str, usd: float, start: str, end: str, trigger: str = "finish") -> None:
    """Let a job run from one time to another, which costs so much."""
    jobs.submit(request(name))
    job = jobs.find(derived_id("job", name))
    assert job is not None
    running = jobs.take(job, "start", {}, f"{start}.000Z")
    assert running is not None
    ended: Any = (
        {"artifacts": {"final_checkpoint": "x"}} if trigger == "finish" else {"error": {"code": "INFRA"}}
    )
    parts = {**ended, "resource_usage": {"cost_usd": usd}}
    assert jobs.take(running, trigger, parts, f"{end}.000Z") is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "day", "wanted"),
    [(0.0, 0.0, 0.0), (5.0, 0.0, 0.0), (0.0, 5.0, 0.0), (5.0, 12.0, 5.0), (5.0, 2.0, 2.0)],
)
def test_a_job_has_no_budget_unless_both_are_set(job: float, day: float, wanted: float) -> None:
    assert limits(usd_per_job=job, usd_per_day=day).job_usd == wanted


def test_jobs_of_a_day_are_counted_whole_and_over_midnight_on_both(jobs: TrainingJobs) -> None:
    spend(jobs, "before", 1.0, "2026-03-09T10:00:00", "2026-03-09T11:00:00")
    spend(jobs, "over", 2.0, "2026-03-09T23:00:00", "2026-03-10T00:30:00")
    spend(jobs, "failed", 4.0, "2026-03-10T01:00:00", "2026-03-10T02:00:00", "fail")
    jobs.submit(request("waits"))
    days = ("2026-03-08", "2026-03-09", DAY, "2026-03-11")
    assert [day_usd(jobs.listed(), day) for day in days] == [0.0, 3.0, 6.0, 0.0]


def test_a_clock_that_goes_back_over_midnight_brings_no_bill_out_of_its_days(
    jobs: TrainingJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend(jobs, "back", 2.0, f"{DAY}T00:10:00", "2026-03-09T23:55:00")
    assert [day_usd(jobs.listed(), day) for day in ("2026-03-09", DAY, "2026-03-11")] == [2.0, 2.0, 0.0]
    monkeypatch.setattr(job_store, "MOST_ENDED", 1)
    spend(jobs, "next", 1.0, f"{DAY}T01:00:00", f"{DAY}T02:00:00")
    assert day_usd(jobs.listed(), DAY) == 3.0


def test_a_job_waits_where_the_day_has_not_its_whole_budget_left(jobs: TrainingJobs) -> None:
    spend(jobs, "one", 7.0, f"{DAY}T01:00:00", f"{DAY}T02:00:00")
    now = f"{DAY}T12:00:00.000Z"
    assert limits(usd_per_job=5.0, usd_per_day=12.0).waiting(jobs.listed(), now) == ""
    why = limits(usd_per_job=5.1, usd_per_day=12.0).waiting(jobs.listed(), now)
    assert why == (
        "$7.00 of budget_usd_per_day ($12.00) are spent, and a job may take $5.10; it starts after 00:00 UTC"
    )
    assert limits().waiting(jobs.listed(), now) == ""
    assert limits(usd_per_job=5.1, usd_per_day=12.0).waiting(jobs.listed(), "2026-03-11T00:00:00.000Z") == ""


def test_a_bill_outlives_statuses_without_one_and_another_process(
    jobs: TrainingJobs, embedded: BusPlace
) -> None:
    jobs.submit(request())
    running = jobs.take(jobs.listed()[0], "start", {}, f"{DAY}T01:00:00.000Z")
    assert running is not None
    jobs.note_status(running, {**running.status, "resource_usage": {"cost_usd": 3.0}})
    again = TrainingJobs(embedded.open(), "two")
    assert again.take(again.listed()[0], "resume", {}, f"{DAY}T02:00:00.000Z") is not None
    found = again.listed()[0]
    assert again.take(found, "fail", {"error": {"code": "OOM"}}, f"{DAY}T03:00:00.000Z") is not None
    assert day_usd(again.listed(), DAY) == 3.0


def test_bills_of_the_day_are_not_forgotten(jobs: TrainingJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_store, "MOST_ENDED", 1)
    for n, usd in enumerate((1.0, 0.0, 2.0, 4.0)):
        spend(jobs, str(n), usd, f"{DAY}T0{n}:00:00", f"{DAY}T0{n}:30:00")
    assert day_usd(jobs.listed(), DAY) == 7.0
    assert len(jobs.listed()) == 3
    spend(jobs, "next", 1.0, "2026-03-11T01:00:00", "2026-03-11T02:00:00")
    assert len(jobs.listed()) == 1


def test_the_runner_lets_a_job_wait_for_the_next_day_and_says_so_once(
    embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    bus, started = embedded.open(), FakeStarter()
    jobs, scrubber = TrainingJobs(bus, "one"), LoopScrubber(b"k" * 32)
    found = JobLimits(timeout_s=1e9, usd_per_job=2.0, usd_per_day=3.0)
    plan = PytestPlan(project=tmp_path, budget_usd=found.job_usd)
    runner = TrainingRunner(
        bus,
        jobs,
        tmp_path / "jobs",
        cut=cut,
        openers=job_openers(plan, (), started, scrubber),
        limits=found,
        clock=clock,
        wall=clock,
    )

    def go() -> None:
        for _ in range(8):
            clock.now += 3.0
            runner.step()
            if runner._now is not None and runner._now.cutting is not None:
                runner._now.cutting.exception(10)

    spend(jobs, "before", 1.5, f"{DAY}T01:00:00", f"{DAY}T02:00:00")
    jobs.submit(request())
    clock.now = datetime(2026, 3, 10, 22, tzinfo=UTC).timestamp()
    go()
    said = [one.get("metadata", {}).get("waiting", "") for one in statuses(bus)]
    assert started.made == []
    assert said[0] == ""
    assert said[1].startswith("$1.50 of budget_usd_per_day")
    assert len(said) == 2
    figures = training_figures(jobs.listed(), runs_here=True)
    assert (figures["queue_depth"], figures["waiting"]) == (1, said[1])
    assert any(line.startswith("waits      $1.50") for line in training_lines(figures))
    clock.now = datetime(2026, 3, 11, 0, tzinfo=UTC).timestamp()
    go()
    assert states(bus) == ["queued", "queued", "running"]
    assert "waiting" not in statuses(bus)[-1]["metadata"]
    assert [one.flag("--tfgrpo-budget-usd") for one in started.made] == ["2"]


def test_a_budget_that_pytest_refuses_names_the_settings() -> None:
    said = "ERROR: tfgrpo: budget_usd is 0, but actor 'command:./agent' costs money; raise it"
    error = failure(4, said, "evidence.jsonl").parts["error"]
    assert error["code"] == "INFRA"
    assert "set [training] budget_usd_per_job and budget_usd_per_day" in error["message"]


def test_a_job_that_cannot_be_followed_any_more_keeps_its_bill(
    embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    class Broken:
        """Work that breaks once it has cost something."""

        def look(self) -> None:
            raise JournalError("it cannot be read")

        def parts(self) -> dict[str, Any]:
            return {"resource_usage": {"cost_usd": 1.25}}

        def kill(self) -> None:
            """Let go of nothing."""

        interrupt = kill

    bus = embedded.open()
    jobs = TrainingJobs(bus, "one")
    openers: Any = {"tfgrpo": lambda job, folder: Broken()}
    runner = TrainingRunner(
        bus,
        jobs,
        tmp_path,
        cut=cut,
        openers=openers,
        limits=JobLimits(timeout_s=1e9),
        clock=clock,
        wall=clock,
    )
    jobs.submit(request())
    for _ in range(8):
        clock.now += 0.1
        runner.step()
        clock.now += 0.5
        if runner._now is not None and runner._now.cutting is not None:
            runner._now.cutting.exception(10)
    (found,) = jobs.listed()
    assert (found.state, found.spent_usd) == ("failed", 1.25)
