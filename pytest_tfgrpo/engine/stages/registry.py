"""The stages and sources that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_tfgrpo.engine.attempts.stage import AnswerSource, Stage, Stages
from pytest_tfgrpo.engine.resumption import Journaled
from pytest_tfgrpo.engine.stages.given import GivenAnswers
from pytest_tfgrpo.engine.stages.tracing import TracedAttempts
from pytest_tfgrpo.runs.job import Job

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger
    from pytest_tfgrpo.engine.lineup import Lineup
    from pytest_tfgrpo.engine.run_writer import RunWriter


class StageSetup(NamedTuple):
    """What a stage may need of its run."""

    job: Job
    writer: RunWriter
    """Writes the journal."""
    warn: Callable[[str], None]
    """Takes warnings of the run."""


OpenStage: TypeAlias = Callable[[StageSetup], Stage | None]
"""Opens a stage for a run that needs one."""
OpenSource: TypeAlias = "Callable[[RunContext, Lineup, Ledger], AnswerSource | None]"
"""Opens a source for one cohort that needs it."""


def open_worlds(setup: StageSetup) -> Stage | None:
    """Return what sets up and tears down the worlds of rollouts, where a scenario says how."""
    if not any(scenario.steps for scenario in setup.job.scenarios) or setup.job.replayed:
        return None
    from pytest_tfgrpo.engine.stages.worlds import Worlds

    return Worlds(*setup)


def open_tracing(setup: StageSetup) -> Stage | None:
    """Return what traces attempts, where the run has telemetry."""
    return None if setup.job.tracing is None else TracedAttempts(setup.job.tracing)


def open_given(context: RunContext, _lineup: Lineup, _ledger: Ledger) -> AnswerSource | None:
    """Return the attempts that the run has from elsewhere, where it has some."""
    given = context.job.given
    return None if given is None else GivenAnswers(context.job.run_id, given)


STAGES: tuple[OpenStage, ...] = (open_worlds, open_tracing)
"""Outermost first."""
SOURCES: tuple[OpenSource, ...] = (Journaled, open_given)
"""Looked up in this order."""


def open_stages(setup: StageSetup) -> Stages:
    """Return the stages of a run."""
    opened = (open_stage(setup) for open_stage in STAGES)
    return Stages([stage for stage in opened if stage is not None], setup.warn)
