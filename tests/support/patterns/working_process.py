"""A process that works a queue with proofs that take a while, for tests that kill it.

``python -m support.patterns.working_process FOLDER TTL_S`` ends once nothing is left. Beside FOLDER it leaves
a file in ``proofs`` for each proof that began, and in ``written`` for each pattern.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.patterns.jobs import worker
from pytest_tfgrpo.patterns.jobs.alerts import AlertCommand
from pytest_tfgrpo.patterns.jobs.crew import CrewPlan, work_queue
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.jobs.worker import LearningWorker, WorkTools
from pytest_tfgrpo.sandbox.programs.cancelling import require_going
from support.patterns.working import Proof, ToldGit

PROOF_S = 0.15
"""How long a proof takes, in ten steps."""


def main(learning: Path, ttl_s: float) -> None:
    """Work until nothing is left."""
    worker.broken = lambda *_: []  # type: ignore[attr-defined]
    call = AlertCommand(["sh", "-c", "cat >> ../alerts.jsonl"], learning)
    tools = WorkTools(git=ToldGit(), prove=prove, author=author)
    with JobQueue(learning) as queue:
        settle(queue, call)
        LearningWorker(queue, tools).add_patterns()
        for _ in work_queue(learning, tools, CrewPlan(ttl_s=ttl_s, renewed_s=ttl_s / 10)):
            settle(queue, call)
        settle(queue, call)


def prove(job: JobManifest, folder: Path) -> Proof:
    """Take a while; every third job fails, every fifth needs a person."""
    note(folder.parent.parent.parent / "proofs", job.job_id)
    for step in range(10):
        require_going()
        time.sleep(PROOF_S / 10)
        (folder / f"step-{step}").write_text(job.job_id)
    (folder / "one.scenario.yaml").write_text(job.job_id)
    number = int(job.job_id[-4:], 16)
    if number % 3 == 1:
        return Proof(LearningStatus.VALIDATION_FAILED, None, "it fails")
    if number % 5 == 1:
        return Proof(LearningStatus.NEEDS_MANUAL, None, "no runner")
    return Proof()


def author(job: JobManifest, folder: Path) -> Callable[[], str]:
    """Write a pattern named after its job."""
    learning = next(one for one in folder.parents if one.name == "learning")
    target = learning.parent / "candidates" / f"{job.job_id}.md"

    def write() -> str:
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}")
        temporary.write_text(job.job_id)
        temporary.replace(target)
        note(target.parent.parent / "written", job.job_id)
        return target.stem

    return write


def note(folder: Path, job_id: str) -> None:
    """Leave a file."""
    folder.mkdir(exist_ok=True)
    (folder / f"{job_id}.{uuid.uuid4().hex[:8]}").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
