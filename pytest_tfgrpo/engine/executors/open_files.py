"""Open files: what the calls of a run take of them, and what this process may have."""

from __future__ import annotations

import resource

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings.runs import CONCURRENCY
from pytest_tfgrpo.protocols import as_metered
from pytest_tfgrpo.runs.job import Job

CONNECTION, PROGRAM = 1, 4
"""Open files of a model call in flight, and of a program with its pipes."""
SPARE = 100
"""For files of the run, modules that load late, and other connections."""


def require_open_files(job: Job, in_flight: int) -> None:
    """Raise this process's soft limit of open files so that so many calls can be in flight.

    Raises SettingError where its hard limit is lower.
    """
    needed = SPARE + _each(job) * min(in_flight, _planned(job))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if needed == SPARE or soft == resource.RLIM_INFINITY or needed <= soft:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):
        raise SettingError(
            f"concurrency = {CONCURRENCY.of(job.settings)}: that many calls of {job.actor.name} need about "
            f"{needed:,} open files, and this process may have {hard:,}; set tfgrpo_concurrency to "
            f"{max(1, (hard - SPARE) // _each(job))}, or raise the limit (`ulimit -Hn`)"
        ) from None


def _each(job: Job) -> int:
    """Return how many open files a call of a job's actor takes."""
    if job.replayed or getattr(job.actor, "batched", False):
        return 0
    if as_metered(job.actor) is not None:
        return CONNECTION
    return PROGRAM if job.actor.name.startswith("command:") else 0


def _planned(job: Job) -> int:
    """Return how many rollouts a phase of a job has at most."""
    return max((phase.planned for phase in job.phases if phase.asks), default=0)
