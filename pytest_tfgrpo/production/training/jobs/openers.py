"""Who does the work of a job, by its algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.production.training.jobs.external_work import ExternalWork
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.process import StartProcess
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan, PytestWork
from pytest_tfgrpo.production.training.jobs.request import TFGRPO
from pytest_tfgrpo.production.training.jobs.versioned.checkpoint_version import keep_checkpoint
from pytest_tfgrpo.production.training.jobs.versioned.learned_version import keep_learned
from pytest_tfgrpo.production.training.jobs.versioned.trials import (
    VersionPlan,
    VersionTrials,
    starting_library,
)
from pytest_tfgrpo.production.training.jobs.versioned.versioned_work import VersionedWork
from pytest_tfgrpo.production.training.jobs.work import JobWork, OpenWork

EXTERNAL = ("ppo", "dpo", "rloo", "grpo", "reinforce")


def job_openers(
    plan: PytestPlan | None,
    command: Sequence[str],
    start: StartProcess,
    scrubber: ValueScrubber,
    versions: VersionPlan | None = None,
) -> Mapping[str, OpenWork]:
    """Return what opens jobs of each algorithm that a service takes: none without a plan and a command.

    With `versions` a run starts from the version that is deployed, and what it learned becomes one, as does a
    trainer's checkpoint. A service with a project takes jobs of an external trainer too, even if only to say
    that there is none.
    """
    if plan is None and not command:
        return {}

    def train(job: TrainingJob, folder: Path) -> JobWork:
        work = ExternalWork(job, folder, command, start, scrubber)
        if versions is None:
            return work
        starting_library(versions.policies, folder)
        return VersionedWork(work, VersionTrials(job.id, folder, versions, start), keep_checkpoint)

    openers: dict[str, OpenWork] = dict.fromkeys(EXTERNAL, train)
    if plan is not None:
        openers[TFGRPO] = partial(_learn, plan, start, scrubber, versions)
    return openers


def _learn(
    plan: PytestPlan,
    start: StartProcess,
    scrubber: ValueScrubber,
    versions: VersionPlan | None,
    job: TrainingJob,
    folder: Path,
) -> JobWork:
    if versions is None:
        return PytestWork(job, folder, plan, start, scrubber)
    library = starting_library(versions.policies, folder).absolute()
    trials = VersionTrials(job.id, folder, versions, start)
    args = (*plan.args, *trials.model_args(trials.checkpoint))
    work = PytestWork(job, folder, replace(plan, library=library, args=args), start, scrubber)
    return VersionedWork(work, trials, keep_learned)
