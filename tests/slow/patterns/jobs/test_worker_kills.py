"""Three workers share a queue and are killed at any moment: no job is lost, and none is done twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.patterns.jobs import job_id, manifest
from support.patterns.working import ToldGit, write_files
from support.patterns.working_process import PROOF_S, author, prove

from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.jobs.states import JOBS
from pytest_tfgrpo.patterns.jobs.worker import LearningWorker, WorkTools

pytestmark = pytest.mark.faults

WORKERS, TTL_S, PATIENCE_S = 3, 2.0, 300.0
IN_PROOFS = 0.7
"""Share of the kills that hit a process with a job; the others hit any, also one that starts."""
STEPS = {(state, after) for (state, _), (after, _) in JOBS.rows.items()}


class Crew:
    """Processes that work one queue."""

    def __init__(self, learning: Path) -> None:
        self.learning = learning
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start what is missing."""
        self.processes = [one for one in self.processes if one.poll() is None]
        while len(self.processes) < WORKERS:
            argv = (sys.executable, "-m", "support.patterns.working_process", str(self.learning), str(TTL_S))
            path = os.pathsep.join(filter(None, sys.path))
            self.processes.append(
                subprocess.Popen(
                    argv, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, cwd="/"
                )
            )

    def any(self, draw: random.Random) -> subprocess.Popen[bytes]:
        """Return any process."""
        return draw.choice(self.processes)

    def holder(self, learning: Path) -> subprocess.Popen[bytes] | None:
        """Return a process that has a job; None: none has."""
        with JobQueue(learning) as queue:
            pids = {job.holder.split("-")[-2] for job in queue.jobs() if job.holder}
        return next((one for one in self.processes if str(one.pid) in pids), None)

    def end(self) -> None:
        """Kill all that is left."""
        for one in self.processes:
            one.kill()
            one.wait()


@pytest.fixture
def learning(tmp_path: Path) -> Path:
    return tmp_path / "learning"


@pytest.fixture
def crew(learning: Path) -> Iterator[Crew]:
    found = Crew(learning)
    yield found
    found.end()


def add(learning: Path, numbers: range) -> None:
    with JobQueue(learning) as queue:
        for n in numbers:
            queue.add(write_files(learning / job_id(n), manifest(n)))


def open_jobs(learning: Path) -> int:
    with JobQueue(learning) as queue:
        return sum(job.status in (LearningStatus.QUEUED, LearningStatus.RUNNING) for job in queue.jobs())


def expected(n: int) -> str:
    return "validation_failed" if n % 3 == 1 else "needs_manual_scenario" if n % 5 == 1 else "validated"


def test_no_job_is_lost_or_done_twice(campaign: Campaign, learning: Path, crew: Crew) -> None:
    kills = campaign.count(10, 200)
    draw, total, killed, draw_proof = campaign.random("learning kills"), 0, 0, True
    until = time.monotonic() + PATIENCE_S + 10 * kills
    while killed < kills or open_jobs(learning):
        assert time.monotonic() < until, f"{killed} kills, {open_jobs(learning)} jobs left"
        if killed < kills and (total == 0 or open_jobs(learning) < 2 * WORKERS):
            add(learning, range(total, total + 10))
            total += 10
        crew.start()
        time.sleep(0.02)
        if killed < kills and (one := crew.holder(learning) if draw_proof else crew.any(draw)) is not None:
            time.sleep(draw.uniform(0.0, 2 * PROOF_S))
            one.send_signal(signal.SIGKILL)
            one.wait()
            killed, draw_proof = killed + 1, draw.random() < IN_PROOFS
    crew.end()
    check(learning, total)
    print(f"{killed} kills, {total} jobs, {len(list((learning.parent / 'proofs').iterdir()))} proofs")


def check(learning: Path, total: int) -> None:
    """Check that each job ended once, and that files, log and alerts say so."""
    with JobQueue(learning) as queue:
        tools = WorkTools(git=ToldGit(), prove=prove, author=author)
        LearningWorker(queue, tools).add_patterns()
        settle(queue, lambda _data: "")
        jobs = {job.id: job for job in queue.jobs()}
        with queue.reading() as db:
            called = Counter(job for (job,) in db.execute(
                "SELECT json_extract(entry, '$.job') FROM owed WHERE alert IN ('called', 'failed')"
            ))  # fmt: skip
    assert set(jobs) == {job_id(n) for n in range(total)}
    entries = ChainedLog(learning / "log.jsonl").entries()
    assert max(Counter(entry["id"] for entry in entries).values()) == 1
    written = Counter(path.name.partition(".")[0] for path in (learning.parent / "written").iterdir())
    for n in range(total):
        id_ = job_id(n)
        found = jobs[id_].manifest
        gave_up = found.reason.startswith("the worker ")
        assert gave_up or found.status == expected(n), (n, found)
        assert read_manifest(learning / id_) == found
        ends_right(learning / id_, id_, found.status.value, gave_up=gave_up)
        steps = [(one["from"], one["to"]) for one in entries if one["job"] == id_ and "to" in one]
        follows(steps, found.status.value)
        ends = [after for _, after in steps if after not in ("queued", "running")]
        assert ends == [found.status.value]
        assert called[id_] == (found.status == "needs_manual_scenario" or gave_up)
        assert bool(written[id_]) == (found.status == "validated")
        assert found.pattern == (id_ if found.status == "validated" else "")


def follows(steps: list[tuple[str, str]], last: str) -> None:
    """Check that each step of a job follows from the one before it, and is in the table."""
    assert steps[0][0] == ""
    assert [before for before, _ in steps[1:]] == [after for _, after in steps[:-1]]
    assert set(steps) <= STEPS
    assert steps[-1][1] == last


def ends_right(folder: Path, id_: str, status: str, *, gave_up: bool) -> None:
    """Check that a job's folder holds the files of one whole attempt, or none."""
    names = {path.name for path in folder.iterdir()}
    steps = {f"step-{n}" for n in range(10)} | {"one.scenario.yaml"}
    assert names & steps in ((steps, set()) if gave_up else (steps,)), (status, names)
    assert all((folder / name).read_text() == id_ for name in names & steps)


def test_alerts_reach_the_command_whole(learning: Path, crew: Crew) -> None:
    add(learning, range(6, 12))
    crew.start()
    for one in crew.processes:
        assert one.wait(PATIENCE_S) == 0
    called = [json.loads(line) for line in (learning.parent / "alerts.jsonl").read_text().splitlines()]
    assert sorted(one["job"] for one in called) == [job_id(n) for n in (6, 11)]
    assert {one["to"] for one in called} == {"needs_manual_scenario"}
