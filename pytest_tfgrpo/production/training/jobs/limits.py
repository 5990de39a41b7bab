"""What jobs may take: time, and money by job and by day."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import money
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob

ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class JobLimits:
    """Limits of jobs; a budget of 0 is none."""

    timeout_s: float
    usd_per_job: float = 0.0
    usd_per_day: float = 0.0

    @property
    def job_usd(self) -> float:
        """What a job may spend: 0, so that it is refused an agent that costs money, unless both are set."""
        return min(self.usd_per_job, self.usd_per_day)

    def waiting(self, jobs: Iterable[TrainingJob], time: str) -> str:
        """Return why no job may start at this time, in UTC: the day has not its whole budget left."""
        spent = day_usd(jobs, time[:10])
        if not self.job_usd or spent + self.job_usd <= self.usd_per_day * (1 + ROUNDING):
            return ""
        return (
            f"{money(spent)} of budget_usd_per_day ({money(self.usd_per_day)}) are spent, and a job may take "
            f"{money(self.job_usd)}; it starts after 00:00 UTC"
        )


def day_usd(jobs: Iterable[TrainingJob], day: str) -> float:
    """Return what jobs spent on a day in UTC; one that ran over midnight counts whole on both days."""
    return sum(job.spent_usd for job in jobs if job.started and _first(job)[:10] <= day <= _last(job)[:10])


def _first(job: TrainingJob) -> str:
    return min(job.started, str(job.status["timestamp"]))


def _last(job: TrainingJob) -> str:
    """Return when a job was last heard of; a clock that went back brings none of it out of its days."""
    return max(job.started, str(job.status["timestamp"]))
