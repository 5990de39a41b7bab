"""The runner: one job at a time, cancelled, too slow, lost and taken over; and pytest's work in it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.buses import BusPlace, Clock
from support.feedback.training import FakeProcess, FakeStarter, cut, example, request, states, statuses

from pytest_tfgrpo.core.errors import BusError, ExportError, StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs import runner
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.limits import JobLimits
from pytest_tfgrpo.production.training.jobs.process import LOCK
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan, PytestWork
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest, read_request
from pytest_tfgrpo.production.training.jobs.request_intake import RequestIntake
from pytest_tfgrpo.production.training.jobs.runner import (
    EVERY_S,
    GRACE_S,
    HANDOVER_S,
    LEASE,
    TrainingRunner,
)
from pytest_tfgrpo.production.training.jobs.work import CutEvidence
from pytest_tfgrpo.runs.journal.journal import encode
from pytest_tfgrpo.storage.lease import Lease

HOUR = 3600.0


class Queue:
    """A runner over fake processes on a bus, under a clock."""

    def __init__(self, place: BusPlace, folder: Path, clock: Clock, owner: str = "one", **plan: Any) -> None:
        self.bus, self.clock, self.folder = place.open(), clock, folder / "jobs"
        self.jobs = TrainingJobs(self.bus, owner)
        self.started = FakeStarter()
        self.plan = PytestPlan(project=folder, **plan)
        self.limits = JobLimits(timeout_s=24 * HOUR)
        self.stack = ExitStack()
        self.ahead_s = 0.0
        """How far the time of the day is ahead of the clock that only goes on."""
        self.runner = self.open(cut)

    def open(self, cut: CutEvidence) -> TrainingRunner:
        return TrainingRunner(
            self.bus,
            self.jobs,
            self.folder,
            cut=cut,
            openers={
                "tfgrpo": lambda job, folder: PytestWork(
                    job, folder, self.plan, self.started, LoopScrubber(b"k" * 32), self.clock
                )
            },
            limits=self.limits,
            clock=self.clock,
            wall=lambda: self.clock() + self.ahead_s,
        )

    def go(self, steps: int = 8) -> None:
        for _ in range(steps):
            self.clock.now += 1.0
            self.runner.step()
            future = self.runner._now.cutting if self.runner._now else None
            if future is not None:
                future.exception(10)

    @property
    def process(self) -> FakeProcess:
        return self.started.made[-1]

    def out(self, name: str = "one") -> Path:
        return self.folder / derived_id("job", name) / "out"

    def write_run(self, name: str = "one", *, run: str = "20260101T000000-000000aa", end: str = "") -> Path:
        """Write what a run leaves: a journal with some rollouts, and a report where it came to an `end`."""
        folder = self.out(name) / "suite" / "runs" / run
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "journal.jsonl").write_bytes(journal(end))
        if end:
            (folder / "report.json").write_text(json.dumps(report(end)))
            (folder.parent.parent / "library.json").write_text("{}")
        return folder


PHASES = [
    {"epoch": 0, "mode": "baseline", "scenarios": ["e1"], "rollouts": 2},
    {"epoch": 1, "mode": "train", "scenarios": ["t1", "t2"], "rollouts": 2},
    {"epoch": 2, "mode": "eval", "scenarios": ["e1"], "rollouts": 4},
]
FINISHED = "2026-01-01T01:00:00.000Z"


def journal(end: str) -> bytes:
    events: list[tuple[str, Json]] = [("run", {"schema": "tfgrpo.journal/1", "phases": PHASES})]
    for scenario, rewards in (("t1", (1.0, 0.5)), ("t2", (0.5, 0.0))):
        for index in range(2):
            made = {"epoch": 1, "mode": "train", "rollout_id": f"{scenario}.{index}", "cost_usd": 0.25}
            events.append(("rollout", made))
        scores = [{"reward": one} for one in rewards]
        group = {"epoch": 1, "mode": "train", "group_id": scenario, "scores": scores}
        events.append(("group", group))
    if end:
        events.append(("finish", {"status": end, "reason": "", "finished_at": FINISHED, "warnings": []}))
    return b"".join(encode(n, kind, data) for n, (kind, data) in enumerate(events, 1))


def report(status: str, *, start: str = "a", gate: str = "pass") -> dict[str, Any]:
    return {
        "run_id": "20260101T000000-000000aa", "status": status, "reason": "budget_usd of 1 is used up",
        "started_at": "2026-01-01T00:00:00.000Z", "finished_at": FINISHED,
        "epochs": [{"mode": "eval", "gt_score": {"mean": 0.75}}],
        "gain": {"difference": 0.5}, "domains": [{"domain": "words", "mean": 0.75}],
        "library": {"start": start, "hash": "b"}, "settings": {"library": "none"},
        "cost": {"usd": 1.5}, "gate": {"outcome": gate},
    }  # fmt: skip


@pytest.fixture
def queue(embedded: BusPlace, tmp_path: Path, clock: Clock) -> Queue:
    return Queue(embedded, tmp_path, clock)


def test_a_job_is_pytest_in_the_project_with_its_evidence_and_says_what_it_learned(
    queue: Queue, tmp_path: Path
) -> None:
    queue.plan = PytestPlan(project=tmp_path, args=("-k", "words"), budget_usd=2.5)
    wanted = read_request(example())
    assert isinstance(wanted, TrainingRequest)
    data = {**wanted.payload, "training_job_id": derived_id("job", "one")}
    data["training_config"] = {**data["training_config"], "algorithm": "tfgrpo"}
    queue.jobs.submit(TrainingRequest(payload=data))
    queue.go()
    words = queue.process.command
    assert words[1:4] == ["-m", "pytest", "--tfgrpo"]
    assert words[-2:] == ["-k", "words"]
    assert Path(queue.process.flag("--tfgrpo-evidence")).is_file()
    assert queue.process.flag("--tfgrpo-out") == str(queue.out())
    assert (queue.process.flag("--tfgrpo-budget-usd"), queue.process.flag("--tfgrpo-epochs")) == ("2.5", "3")
    assert queue.process.flag("--tfgrpo-untested") == "hold"
    assert (queue.process.cwd, queue.process.flag("--tfgrpo-resume")) == (tmp_path, "")
    queue.write_run(end="complete")
    queue.process.end(0)
    queue.go()
    last = statuses(queue.bus)[-1]
    assert last["status"] == "completed"
    assert last["artifacts"] == {"final_checkpoint": str(queue.out() / "suite" / "library.json")}
    assert last["evaluation_results"] == {
        "holdout_reward": 0.75, "improvement_over_baseline": 0.5, "benchmark_scores": {"words": 0.75},
    }  # fmt: skip
    assert last["resource_usage"] == {"cost_usd": 1.5, "total_training_time_seconds": 3600.0}
    assert last["metrics"]["best"] == {"epoch": 1, "reward_mean": 0.5}
    assert last["metrics"]["current"] == {"reward_mean": 0.5, "reward_std": 0.353553}
    assert (last["metadata"]["gate"], last["metadata"]["samples"]) == ("pass", 2)
    assert "/training_config/compute/gpu_count" in last["metadata"]["ignored"]
    assert states(queue.bus) == ["queued", "running", "completed"]


def test_a_failed_gate_is_a_job_that_completed_and_nothing_learned_says_so(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.go()
    run = queue.write_run(end="complete")
    (run / "report.json").write_text(json.dumps(report("complete", start="b", gate="fail")))
    (queue.out() / "suite" / "library.json").unlink()
    queue.process.end(1)
    queue.go()
    last = statuses(queue.bus)[-1]
    assert (last["status"], last["metadata"]["gate"]) == ("completed", "fail")
    assert (last["metadata"]["reason"], last["artifacts"]["final_checkpoint"]) == ("nothing_learned", "none")


def test_one_job_at_a_time_over_all_services_and_the_most_urgent_first(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    other = Queue(embedded, tmp_path, clock, "two")
    for name, priority in (("one", "low"), ("two", "normal"), ("three", "urgent")):
        queue.jobs.submit(request(name, priority=priority))
    for _ in range(10):
        queue.go(1)
        other.go(1)
    assert (len(queue.started.made), other.started.made) == (1, [])
    assert (queue.runner.step(), other.runner.step()) == (0, 0), "nothing changes"
    for name in ("three", "two", "one"):
        assert queue.process.flag("--tfgrpo-out") == str(queue.out(name))
        queue.write_run(name, end="complete")
        queue.process.end(0)
        queue.go()
    assert len(queue.started.made) == 3
    assert {job.state for job in queue.jobs.listed()} == {"completed"}


def test_status_at_each_change_and_once_a_minute_with_progress(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run()
    queue.clock.now += 10
    queue.go(2)
    assert len(statuses(queue.bus)) == 2
    for _ in range(12):
        queue.clock.now += EVERY_S / 4
        queue.go(1)
    found = statuses(queue.bus)
    assert 4 <= len(found) <= 6
    assert found[-1]["progress"] | {"eta_seconds": 0} == {
        "current_epoch": 1, "total_epochs": 2, "current_step": 4, "total_steps": 10,
        "percent_complete": 40.0, "eta_seconds": 0,
    }  # fmt: skip
    assert found[-1]["resource_usage"]["cost_usd"] == 1.0
    assert queue.jobs.listed()[0].status == found[-1]


def test_statuses_of_each_minute_crowd_out_no_request_that_nobody_read(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CROWDED", 5)
    queue.jobs.submit(request())
    queue.go()
    queue.write_run()
    for _ in range(10):
        queue.clock.now += EVERY_S
        queue.go(1)
    assert len(list(queue.bus.replay("RL_TRAINING"))) == 5  # the request among them
    assert queue.jobs.listed()[0].status["metrics"]
    RequestIntake(queue.bus, queue.jobs).step()
    queue.clock.now += EVERY_S
    queue.go(1)
    assert len(list(queue.bus.replay("RL_TRAINING"))) == 6


@pytest.mark.parametrize("obeys", [True, False])
def test_a_cancelled_job_is_interrupted_and_killed_where_it_does_not_end(queue: Queue, obeys: bool) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.process.on_interrupt = 2 if obeys else None
    assert queue.jobs.cancel(derived_id("job", "one")) == "running"
    queue.go(3)
    assert queue.process.over is obeys
    queue.clock.now += GRACE_S
    queue.go(3)
    assert queue.process.signals == ["interrupt"] if obeys else ["interrupt", "kill"]
    assert states(queue.bus) == ["queued", "running", "cancelled"]
    assert len(queue.started.made) == 1


def test_a_job_that_takes_too_long_fails_by_time(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.clock.now += 24 * HOUR
    queue.runner.step()
    queue.go()
    last = statuses(queue.bus)[-1]
    assert (last["status"], last["error"]["code"]) == ("failed", "TIMEOUT")
    assert "timeout_h" in last["error"]["message"]


@pytest.mark.parametrize("ahead_s", [30 * 24 * HOUR, -30 * 24 * HOUR])
def test_a_clock_that_is_set_fails_no_job_and_lets_none_run_longer(queue: Queue, ahead_s: float) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.ahead_s = ahead_s
    queue.go()
    assert states(queue.bus) == ["queued", "running"]
    queue.clock.now += 24 * HOUR
    queue.go()
    assert statuses(queue.bus)[-1]["error"]["code"] == "TIMEOUT"


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("ahead_s", [30 * 24 * HOUR, 0.0])
def test_the_time_that_a_job_ran_outlasts_its_service_and_the_time_between_does_not_count(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock, killed: bool, ahead_s: float
) -> None:
    queue.jobs.submit(request())
    queue.go()
    for _ in range(14):
        clock.now += HOUR
        queue.runner.step()
    if not killed:
        queue.runner.close()
    queue.write_run()
    clock.now += 9 * HOUR
    other = Queue(embedded, tmp_path, clock, "two")
    other.ahead_s = ahead_s
    other.go(3)
    clock.now += 30
    other.go(5)
    clock.now += 9.5 * HOUR
    other.go()
    assert states(queue.bus)[-1] == "running"
    clock.now += 0.5 * HOUR
    other.go()
    assert statuses(queue.bus)[-1]["error"]["code"] == "TIMEOUT"


@pytest.mark.parametrize(
    ("code", "wanted"), [(2, "INFRA"), (3, "INFRA"), (4, "INFRA"), (5, "DATA"), (77, "UNKNOWN")]
)
def test_an_exit_code_without_a_run_fails_with_the_end_of_the_output(
    queue: Queue, code: int, wanted: str
) -> None:
    queue.jobs.submit(request())
    queue.go()
    said = "ERROR: mail anna@example.com\n" * 1000 + "usage: no such flag\n"
    (queue.out().parent / "output.log").write_text(said)
    queue.process.end(code)
    queue.go()
    error = statuses(queue.bus)[-1]["error"]
    assert (error["code"], len(queue.started.made)) == (wanted, 1)
    assert error["traceback"].endswith("usage: no such flag")
    assert "anna@" not in error["traceback"]
    assert len(error["traceback"]) < 6000


def test_evidence_that_pytest_refuses_is_bad_data(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.go()
    (queue.out().parent / "output.log").write_text("ERROR: /x/evidence.jsonl:2: no attempts\n")
    queue.process.end(4)
    queue.go()
    assert statuses(queue.bus)[-1]["error"]["code"] == "DATA"


@pytest.mark.parametrize(("end", "wanted"), [("incomplete", "failed"), ("cancelled", "cancelled")])
def test_a_run_that_ended_early_is_no_success(queue: Queue, end: str, wanted: str) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run(end=end)
    queue.process.end(2)
    queue.go()
    last = statuses(queue.bus)[-1]
    assert last["status"] == wanted
    if wanted == "failed":
        assert "budget_usd of 1 is used up" in last["error"]["message"]
        assert "set [training] budget_usd_per_job and budget_usd_per_day" in last["error"]["message"]
        assert queue.process.flag("--tfgrpo-budget-usd") == "0"


def test_a_process_that_dies_is_resumed_thrice_at_most(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.go()
    for _ in range(3):
        queue.write_run()
        queue.process.end(-9)
        queue.go()
    run = "20260101T000000-000000aa"
    assert [one.flag("--tfgrpo-resume") for one in queue.started.made] == ["", run, run]
    assert statuses(queue.bus)[-1]["error"]["code"] == "OOM"


def test_a_service_that_is_gone_is_replaced_and_its_run_resumed(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run()
    other = Queue(embedded, tmp_path, clock, "two")
    other.go(5)
    assert other.started.made == []
    clock.now += 30
    other.go()
    assert other.process.flag("--tfgrpo-resume") == "20260101T000000-000000aa"
    queue.go(2)  # it comes back: its lease is another's, who did not find its process
    assert queue.process.signals == []
    clock.now += HANDOVER_S
    queue.go(1)
    assert queue.process.signals == ["kill"]
    other.write_run(end="complete")
    other.process.end(0)
    other.go()
    assert states(queue.bus) == ["queued", "running", "running", "completed"]
    assert [len(queue.started.made), len(other.started.made)] == [1, 1]


@contextmanager
def living(folder: Path) -> Iterator[None]:
    """Hold the lock of a job's process, as one does that lives."""
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("1000000000")
        lock.flush()
        yield


@pytest.mark.parametrize("leaves", ["goes on", "closes", "closes before it looks"])
def test_a_service_that_was_only_slow_leaves_its_process_to_who_found_it(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock, leaves: str
) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run()
    other = Queue(embedded, tmp_path, clock, "two")
    with living(queue.out().parent):
        other.go(1)
        clock.now += 30
        other.go(1)
        if leaves != "closes before it looks":
            queue.go(1)
        other.go(7)
        if leaves == "goes on":
            clock.now += HANDOVER_S
            queue.go(1)
        else:
            queue.runner.close()
    other.write_run(end="complete")
    other.go()
    assert queue.process.signals == []
    assert other.started.made == []
    assert states(queue.bus) == ["queued", "running", "running", "completed"]


def test_a_process_that_another_service_started_just_now_fails_no_job(queue: Queue) -> None:
    def refuse(process: FakeProcess) -> None:
        queue.stack.enter_context(living(process.folder))
        raise BlockingIOError("it is held")

    queue.started.then = refuse
    queue.jobs.submit(request())
    with queue.stack:
        queue.go()
        assert states(queue.bus) == ["queued", "running"]
        queue.write_run(end="complete")
    queue.go()
    assert states(queue.bus) == ["queued", "running", "completed"]


def test_a_service_goes_on_with_its_process_if_the_one_that_took_its_lease_is_gone(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    queue.jobs.submit(request())
    queue.go()
    lease = Lease(queue.bus, LEASE, "two", clock=clock)
    lease.hold()
    clock.now += 30
    assert lease.hold()
    queue.go(1)
    lease.release()
    with living(queue.out().parent):
        queue.go()
    queue.write_run(end="complete")
    queue.go()
    assert (len(queue.started.made), queue.process.signals) == (1, [])
    assert states(queue.bus) == ["queued", "running", "running", "completed"]


def test_a_run_that_ended_while_nobody_looked_is_not_run_again(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run(end="complete")
    other = Queue(embedded, tmp_path, clock, "two")
    other.go(1)
    clock.now += 30
    other.go()
    assert other.started.made == []
    assert states(queue.bus)[-1] == "completed"


def test_a_service_that_closes_lets_the_next_one_resume_at_once(
    queue: Queue, embedded: BusPlace, tmp_path: Path, clock: Clock
) -> None:
    queue.jobs.submit(request())
    queue.go()
    queue.write_run()
    queue.runner.close()
    assert queue.process.signals == ["interrupt", "kill"]
    other = Queue(embedded, tmp_path, clock, "two")
    other.go(6)
    assert other.process.flag("--tfgrpo-resume")
    assert states(queue.bus) == ["queued", "running", "running"]


def test_folders_of_jobs_go_after_ninety_days(queue: Queue) -> None:
    old, new, waits = (derived_id("job", name) for name in ("old", "new", "one"))
    for name, days in ((old, 91), (new, 89), (waits, 91), ("rl-checkpoints", 91)):
        (queue.folder / name / "out").mkdir(parents=True)
        os.utime(queue.folder / name, (queue.clock() - days * 86_400,) * 2)
    queue.jobs.submit(request())
    queue.go(1)
    assert {path.name for path in queue.folder.iterdir()} == {new, waits, "rl-checkpoints"}
    queue.clock.now += 2 * 86_400
    queue.go(1)
    assert {path.name for path in queue.folder.iterdir()} == {waits, "rl-checkpoints"}


def refusing(error: Exception) -> Callable[[Mapping[str, Json], Path], None]:
    def refuse(request: Mapping[str, Json], file: Path) -> None:
        raise error

    return refuse


def empty(request: Mapping[str, Json], file: Path) -> None:
    file.write_text('{"schema": "tfgrpo.evidence/1"}\n')


def test_evidence_that_cannot_be_cut_or_is_empty_fails_the_job(queue: Queue) -> None:
    queue.jobs.submit(request("one"))
    queue.runner = queue.open(refusing(StoreError("no such domain")))
    queue.go()
    queue.runner.close()
    queue.jobs.submit(request("two"))
    queue.runner = queue.open(empty)
    queue.go()
    queue.runner.close()
    queue.jobs.submit(request("three"))
    queue.runner = queue.open(refusing(ExportError("has no row")))
    queue.go()
    errors = [statuses(queue.bus, name)[-1]["error"] for name in ("one", "two", "three")]
    assert [one["code"] for one in errors] == ["INFRA", "DATA", "DATA"]
    assert "no such domain" in errors[0]["message"]
    assert queue.started.made == []


def test_a_run_whose_evidence_is_gone_goes_on(queue: Queue) -> None:
    def nothing(request: Mapping[str, Json], file: Path) -> None:
        assert not file.exists()

    queue.jobs.submit(request())
    queue.write_run()
    queue.runner = queue.open(nothing)
    queue.go()
    assert [one.flag("--tfgrpo-resume") for one in queue.started.made] == ["20260101T000000-000000aa"]


def test_a_bus_that_is_away_fails_no_job(queue: Queue) -> None:
    queue.jobs.submit(request())
    queue.runner = queue.open(refusing(BusError("the server is away")))
    with pytest.raises(BusError):
        queue.go()
    queue.runner._cut = cut
    queue.go()
    assert len(queue.started.made) == 1
    assert states(queue.bus) == ["queued", "running"]


def test_jobs_that_nobody_here_can_do_stay_in_the_queue(queue: Queue) -> None:
    queue.jobs.submit(request("ppo", "ppo", priority="urgent"))
    queue.jobs.submit(request())
    queue.go()
    assert [(job.request.algorithm, job.state) for job in queue.jobs.listed()] == [
        ("ppo", "queued"),
        ("tfgrpo", "running"),
    ]


def test_a_command_that_cannot_be_started_fails_the_job(queue: Queue) -> None:
    def refuse(_: FakeProcess) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/gone")

    queue.started.then = refuse
    queue.jobs.submit(request())
    queue.go()
    error = statuses(queue.bus)[-1]["error"]
    assert (error["code"], "/gone" in error["message"]) == ("INFRA", True)
