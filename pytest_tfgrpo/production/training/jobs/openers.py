"""Who does the work of a job, by its algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.production.config import LoopConfig
from pytest_tfgrpo.production.training.jobs.external_work import ExternalWork
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.process import StartProcess
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan, PytestWork
from pytest_tfgrpo.production.training.jobs.request import TFGRPO
from pytest_tfgrpo.production.training.jobs.work import JobWork, OpenWork

EXTERNAL = ("ppo", "dpo", "rloo", "grpo", "reinforce")


def job_openers(config: LoopConfig, start: StartProcess, scrubber: ValueScrubber) -> Mapping[str, OpenWork]:
    """Return what opens jobs of each algorithm that a service with this configuration takes; it may be none.

    A service with a project takes those of an external trainer too, even if only to say that there is none.
    """
    settings, project = config.settings.training, config.project_path
    if project is None and not settings.command:
        return {}

    def learn(job: TrainingJob, folder: Path) -> JobWork:
        assert project is not None
        plan = PytestPlan(project=project, args=settings.args, budget_usd=settings.budget_usd_per_job)
        return PytestWork(job, folder, plan, start, scrubber)

    def train(job: TrainingJob, folder: Path) -> JobWork:
        return ExternalWork(job, folder, settings.command, start, scrubber)

    return {**({} if project is None else {TFGRPO: learn}), **dict.fromkeys(EXTERNAL, train)}
