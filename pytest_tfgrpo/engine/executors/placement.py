"""What of an actor can be placed in workers: one that its spec opens there, or one that can be pickled."""

from __future__ import annotations

import pickle
from functools import partial

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import SettingError, describe
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.settings.runs import EXECUTOR
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.worker import WorkerSetup
from pytest_tfgrpo.protocols import as_metered
from pytest_tfgrpo.runs.job import Job

PLACED = frozenset({"command", "offline", "python"})
"""Names of the actors that a worker opens from their spec. The model calls of others reserve from the run's
budget and share the limits of an endpoint, or the actor knows the run's scenarios: they stay here."""


def is_placed(job: Job) -> bool:
    """Return whether workers make the calls of a run's actor."""
    if job.replayed or as_metered(job.actor) is not None:
        return False
    return job.supplied_actor or _spec(job).partition(":")[0] in PLACED


def setup_of(job: Job) -> WorkerSetup | None:
    """Return what workers open the actor of a run with; None: its calls are made here.

    Raises SettingError for an actor that cannot be pickled.
    """
    if not is_placed(job):
        return None
    if job.supplied_actor:
        return WorkerSetup(agent=_pickled(job), root=job.root)
    return WorkerSetup(agent=partial(open_actor, _spec(job), settings=job.settings), root=job.root)


def _spec(job: Job) -> str:
    return ACTOR.of(job.settings) or ""


def _pickled(job: Job) -> bytes:
    executor = EXECUTOR.of(job.settings)
    ways = "name it by a spec such as python:<module>:<callable>, or set tfgrpo_executor = local"
    try:
        data = pickle.dumps(job.actor)
    except Exception as error:
        why = line(describe(error), 300)
        raise SettingError(
            f"executor = {executor!r}: the actor {job.actor.name!r} cannot be pickled for its workers "
            f"({why}); {ways}"
        ) from error
    if b"__main__" in data:
        raise SettingError(
            f"executor = {executor!r}: the actor {job.actor.name!r} is defined in the program itself "
            f"(__main__), which its workers do not import; move it into a module, or {ways}"
        )
    return data
