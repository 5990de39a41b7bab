"""What only a run that learns needs of the engine, loaded when it comes there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tfgrpo.core.lessons import Library
    from pytest_tfgrpo.core.records import Phase, PhaseResult
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.lineup import Arm
    from pytest_tfgrpo.engine.phases.cohort import Cohort
    from pytest_tfgrpo.engine.phases.learning_phase import LearningPhase
    from pytest_tfgrpo.engine.run_end import RunEnd


def open_learning(
    context: RunContext,
    phase: Phase,
    library: Library,
    earlier: Sequence[PhaseResult],
    sweep: Callable[[Arm], Awaitable[tuple[RunEnd, Cohort]]],
) -> LearningPhase:
    """Return what learns from the groups of a training phase."""
    from pytest_tfgrpo.engine.phases.learning_phase import LearningPhase

    return LearningPhase(context, phase, library, earlier, sweep)
