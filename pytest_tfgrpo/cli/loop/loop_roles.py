"""What makes trajectories and rewards of what came in: the roles of the loop, put together."""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import current_view, open_scrubber
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.assembly.assembler import Assembler
from pytest_tfgrpo.production.deployment.controller import DeploymentController
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator, RewardParts
from pytest_tfgrpo.production.loop_setting import PREFIX
from pytest_tfgrpo.production.opt_out_sweep import OptOutSweep
from pytest_tfgrpo.production.report.status import status_of
from pytest_tfgrpo.production.rewards.components import load_components
from pytest_tfgrpo.production.serving.foreign.flag_file import FlagFile
from pytest_tfgrpo.production.training.dataset.cut import cut
from pytest_tfgrpo.production.training.dataset.request import request_of
from pytest_tfgrpo.production.training.dataset.training_rows import write_training_rows
from pytest_tfgrpo.production.training.jobs.limits import JobLimits
from pytest_tfgrpo.production.training.jobs.openers import EXTERNAL, job_openers
from pytest_tfgrpo.production.training.jobs.process import ProcessStarter
from pytest_tfgrpo.production.training.jobs.pytest_work import OUT, PytestPlan
from pytest_tfgrpo.production.training.jobs.request_intake import RequestIntake
from pytest_tfgrpo.production.training.jobs.run_progress import newest_run
from pytest_tfgrpo.production.training.jobs.runner import TrainingRunner
from pytest_tfgrpo.production.training.jobs.versioned.trials import VersionPlan
from pytest_tfgrpo.production.training.triggers.training_triggers import TrainingTriggers
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.deployable import ramps
from pytest_tfgrpo.production.training.versions.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_tfgrpo.core.wire.wire import Json
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig
    from pytest_tfgrpo.production.door.opt_outs import OptOuts
    from pytest_tfgrpo.production.service.workers import LoopRole
    from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
    from pytest_tfgrpo.production.view.view import LoopView

PATIENCE_S = 3.0
"""How long work that waits may not become less, before another process is taken to do it."""
REST_S = 0.1


def work_off(bus: Bus, config: LoopConfig, opt_outs: OptOuts) -> bool:
    """Make trajectories and rewards of what waits on the bus; False: a service does that. Raises BusError."""
    with ExitStack() as closing:
        view = closing.enter_context(current_view(config, bus))
        roles = open_roles(bus, view, config, opt_outs, settle_s=0.0)
        for role in roles:
            closing.callback(role.close)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if sum(role.step() for role in roles):
                until = time.monotonic() + PATIENCE_S
                continue
            view.catch_up(bus)
            if not any(job.behind for job in status_of(bus, view, "").jobs.values()):
                return True
            time.sleep(REST_S)
        return False


def open_roles(
    bus: Bus, view: LoopView, config: LoopConfig, opt_outs: OptOuts, *, settle_s: float
) -> list[LoopRole]:
    """Return assembler and evaluator under a new name, and the sweep; the caller closes them."""
    settings, owner, scrubber = config.settings, owner_name(), open_scrubber(config)
    assembler = Assembler(
        bus,
        owner,
        idle_s=settings.assembler.idle_s,
        settle_s=settle_s,
        ttl_s=settings.evaluator.lease_s,
        refuses=opt_outs.withdrawn,
        forgo=DroppedRuns(bus, scrubber).forgo,
    )
    evaluator = Evaluator(
        bus,
        view,
        owner,
        parts=RewardParts(weights=settings.rewards.weights, further=load_components()),
        ttl_s=settings.evaluator.lease_s,
        wait_h=settings.evaluator.feedback_wait_h,
    )
    return [assembler, evaluator, OptOutSweep(bus, view, scrubber, opt_outs)]


def _project(config: LoopConfig) -> Path | None:
    """Return the folder of the project, or None; raises SettingError where it is not there."""
    project = config.project_path
    if project is not None and not project.is_dir():
        raise SettingError(
            f"{config.path}: training.project: there is no folder {project}; name that of your suite, "
            "relative to this file"
        )
    return project


def training_roles(
    bus: Bus, view: LoopView, config: LoopConfig, jobs: TrainingJobs, environ: Mapping[str, str]
) -> list[LoopRole]:
    """Return what queues requests and, where this service runs jobs, what requests them and runs them.

    Jobs have the variables of `environ`, but for the loop's own. Raises SettingError where the project is
    not there.
    """
    chosen, scrubber = config.settings.training, open_scrubber(config)
    roles: list[LoopRole] = [RequestIntake(bus, jobs, scrubber)]
    passed = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    project = _project(config)
    limits = JobLimits(
        timeout_s=chosen.timeout_h * 3600.0,
        usd_per_job=chosen.budget_usd_per_job,
        usd_per_day=chosen.budget_usd_per_day,
    )
    plan = None
    if project is not None:
        plan = PytestPlan(project=project, args=chosen.args, budget_usd=limits.job_usd)
    versions = VersionPlan(
        policies=Policies(bus, open_artifacts(config.store)),
        project=project,
        safety=chosen.safety,
        budget_usd=limits.job_usd,
        args=("--tfgrpo-allow-paid=true", *chosen.args),
        checkpoint_args=chosen.checkpoint_args,
    )
    openers = job_openers(plan, chosen.command, ProcessStarter(passed), scrubber, versions)
    if not openers:
        return roles

    runner = TrainingRunner(
        bus,
        jobs,
        config.jobs_path,
        cut=partial(_cut_evidence, bus, view, config),
        openers=openers,
        limits=limits,
        ttl_s=config.settings.evaluator.lease_s,
    )
    triggers = TrainingTriggers(bus, view, jobs, names=chosen.triggers, threshold=chosen.threshold)
    return [*roles, runner, *([triggers] if chosen.triggers else [])]


def _cut_evidence(
    bus: Bus, view: LoopView, config: LoopConfig, request: Mapping[str, Json], file: Path
) -> None:
    """Write what a job learns from, unless its run has read that, and rows for an external trainer."""
    if not file.exists() and newest_run(file.parent / OUT) is None:
        asked = request_of(request["training_config"]["dataset"])
        watermark = request.get("metadata", {}).get("watermark")
        cut(bus, view, asked, file, domains=config.settings.training.domains, watermark=watermark)
    if request["training_config"]["algorithm"] in EXTERNAL:
        write_training_rows(file, request, config.project_path)


def deployment_role(bus: Bus, view: LoopView, config: LoopConfig) -> LoopRole:
    """Return what takes versions to users, step by step."""
    policies = Policies(bus, open_artifacts(config.store))
    automatic = config.settings.deployment.approval == "automatic"
    find_next = ramps(policies, automatic=automatic)
    return DeploymentController(
        bus,
        view,
        find_next,
        owner_name(),
        ttl_s=config.settings.evaluator.lease_s,
        endpoint=config.settings.proxy.url,
    )


def flag_roles(bus: Bus, config: LoopConfig) -> list[LoopRole]:
    """Return what writes the file of flags, where there is to be one."""
    return [] if config.flag_path is None else [FlagFile(bus, config.flag_path)]


def owner_name() -> str:
    """Return what names this process alone: machine, process and a number of its own."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(3)}"
