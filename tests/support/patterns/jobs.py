"""Jobs for tests: manifests as a capture writes them, and queues."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.jobs.manifest import CapturedWork, JobManifest, LearningStatus, WorkSnapshot
from pytest_tfgrpo.patterns.jobs.queue import LOG_FILE, JobQueue


def job_id(n: int = 0) -> str:
    """Return the id of job `n`."""
    return str(uuid.UUID(int=0x4000_8000_0000_0000_0000 + n))


def manifest(n: int = 0, **changes: Any) -> JobManifest:
    """Return the manifest of job `n`, with a snapshot that no repository has."""
    digest = hashlib.sha256(str(n).encode()).hexdigest()
    captured = CapturedWork(
        task_id="task",
        repository="/repository",
        created_at="2026-01-01T12:00:00.000Z",
        approver=changes.pop("approver", "ann"),
        trigger=changes.pop("trigger", "approval"),
        files=("prices.py", "test_prices.py"),
    )
    snapshot = WorkSnapshot(
        ref=f"refs/learning/{job_id(n)}",
        commit="a" * 40,
        base="b" * 40,
        tree="c" * 40,
        base_tree="d" * 40,
        tarball_sha256=digest,
        diff_sha256=digest,
    )
    return JobManifest(**{"job_id": job_id(n), "captured": captured, "snapshot": snapshot, **changes})


def queue_with(folder: Path, *manifests: JobManifest) -> JobQueue:
    """Return a queue with jobs, job 0 by default."""
    queue = JobQueue(folder)
    for one in manifests or (manifest(),):
        queue.add(one)
    return queue


def log_of(queue: JobQueue) -> list[tuple[str, str]]:
    """Return events of the log and where they led to."""
    entries = ChainedLog(queue.folder / LOG_FILE).entries()
    return [(entry["event"], entry.get("to", "")) for entry in entries]


def status_of(queue: JobQueue, n: int = 0) -> LearningStatus:
    """Return where job `n` stands."""
    return queue.find(job_id(n)).status
