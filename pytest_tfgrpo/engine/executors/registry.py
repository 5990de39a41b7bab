"""Executors by name: the table of their openers, and what can be known of them before a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, EXECUTOR
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.local import LocalExecutor
from pytest_tfgrpo.engine.executors.open_files import require_open_files
from pytest_tfgrpo.engine.executors.placement import is_placed, setup_of
from pytest_tfgrpo.engine.executors.protocol import Executor
from pytest_tfgrpo.llm.limits.concurrency import AUTO, UNSEEN, most_at_once, with_batches
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import as_metered
from pytest_tfgrpo.runs.job import Job

ExecutorOpener: TypeAlias = Callable[[str, Job], Executor]
"""Takes what follows the name in the spec."""


def _local(_: str, job: Job) -> Executor:
    return LocalExecutor(_wanted(job))


def _process(argument: str, job: Job) -> Executor:
    from pytest_tfgrpo.engine.executors.process import ProcessExecutor, worker_count

    setup = setup_of(job)
    if setup is None:  # its calls wait for something that this process keeps
        return LocalExecutor(_wanted(job))
    return ProcessExecutor(job.actor, setup, min(worker_count(argument), _wanted(job)))


def _ray(argument: str, job: Job) -> Executor:
    setup = setup_of(job)
    if setup is None:
        return LocalExecutor(_wanted(job))
    from pytest_tfgrpo.engine.executors.cluster.executor import ClusterExecutor

    return ClusterExecutor(job.actor, setup, job, address=argument, places=_wanted(job))


EXECUTORS: Mapping[str, ExecutorOpener] = {"local": _local, "process": _process, "ray": _ray}


def open_executor(job: Job) -> Executor:
    """Return the executor that the setting of a job names; raises SettingError on an unknown one."""
    name, _, argument = EXECUTOR.of(job.settings).partition(":")
    if name not in EXECUTORS:
        raise SettingError(f"unknown executor {name!r}; known: {', '.join(sorted(EXECUTORS))}")
    return EXECUTORS[name](argument, job)


def require_executor(job: Job) -> list[str]:
    """Return what to know of the workers of a job; raises SettingError where its actor cannot be called."""
    spec = EXECUTOR.of(job.settings)
    name, _, argument = spec.partition(":")
    setup = None
    if name != "local":
        setup = setup_of(job)
    if setup is None:  # its calls are made here
        require_open_files(job, _wanted(job))
        return []
    if name == "ray":
        from pytest_tfgrpo.engine.executors.cluster.executor import require_cluster

        return require_cluster(setup, job, argument, _wanted(job))
    from pytest_tfgrpo.engine.executors.worker_process import why_unopened

    if why := why_unopened(setup):
        raise SettingError(
            f"executor = {spec!r}: a worker process cannot open the actor {job.actor.name!r}: "
            f"{line(redact(why), 500)}; what it needs must be importable and in its environment, or set "
            "tfgrpo_executor = local"
        )
    return []


def unplaced(job: Job) -> str:
    """Return what to say of an actor that its executor does not place elsewhere; empty where it does."""
    spec, name = EXECUTOR.of(job.settings), job.actor.name
    if spec == "local" or job.replayed:
        return ""

    if is_placed(job):
        return ""
    return f"executor {spec} does not apply to the actor {name}, whose calls are made in pytest's process"


def shared(spec: str, count: int) -> str:
    """Return the executor of each of `count` agents that run side by side."""
    name, _, argument = spec.partition(":")
    if name != "process":
        return spec
    from pytest_tfgrpo.engine.executors.process import worker_count

    return f"process:{max(1, worker_count(argument) // count)}"


def most_in_flight(job: Job) -> int:
    """Return how many rollouts are in flight at most."""
    wanted = _wanted(job)
    name, _, argument = EXECUTOR.of(job.settings).partition(":")
    if name != "process":
        return wanted
    from pytest_tfgrpo.engine.executors.process import worker_count

    return min(worker_count(argument), wanted) if is_placed(job) else wanted


def _wanted(job: Job) -> int:
    metered = as_metered(job.actor)
    setting = CONCURRENCY.of(job.settings)
    wanted = UNSEEN if metered is None and setting == AUTO else most_at_once(setting)
    wanted = with_batches(wanted, job.actor)
    served = None if metered is None else metered.concurrency
    return wanted if served is None else min(wanted, served)
