"""The command ``tfgrpo learn status``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_tfgrpo.cli.learn.open_learning import OpenLearning, open_learning
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.patterns.jobs.alerts import NEEDED, alert_counts
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob

WIDTH = 21
"""Of a status."""
_PEOPLES = (LearningStatus.SNAPSHOT_FAILED, LearningStatus.STALLED_SNAPSHOT, LearningStatus.NEEDS_MANUAL)


def status(arguments: Arguments) -> Iterator[str]:
    """List the jobs, where each stands, and what a person has to do."""
    with open_learning(arguments) as learning:
        warnings = learning.settle()
        jobs = learning.queue.jobs()
        if arguments.json:
            value = {
                "jobs": [{**to_wire(job.manifest), "waits": job.waits} for job in jobs],
                "alerts": dict(alert_counts(learning.queue)),
                "warnings": warnings,
            }
            yield json.dumps(value, indent=1)
            return
        yield from warnings
        for job in jobs:
            yield job_line(job)
        if not jobs:
            yield f"no jobs in {learning.queue.folder}; `tfgrpo learn capture` makes the first"
        yield from _needed(jobs)
        yield from _alerts(learning)


def job_line(job: QueuedJob) -> str:
    """Return id, status, and what is known of a job."""
    manifest = job.manifest
    cause = f"{manifest.root_cause.value}: " if manifest.root_cause else ""
    what = "waits for approval" if job.waits else f"{cause}{manifest.reason}" if manifest.reason else ""
    what = what or ", ".join(filter(None, (manifest.scenario, manifest.pattern)))
    return f"{job.id[:8]}  {manifest.status.value:<{WIDTH}}  {line(what, 200)}".rstrip()


def _needed(jobs: list[QueuedJob]) -> Iterator[str]:
    needed = [job for job in jobs if job.waits or job.status in _PEOPLES]
    if needed:
        yield ""
        yield "waiting for a person:"
        yield from (f"  {NEEDED[job.status].format(job=job.id[:8])}" for job in needed)


def _alerts(learning: OpenLearning) -> Iterator[str]:
    counts = alert_counts(learning.queue)
    if counts["failed"]:
        sent = counts["failed"] + counts["called"]
        yield f"warning: alert_command failed in {counts['failed']} of {sent} calls"
