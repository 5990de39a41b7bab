"""Looks at a final sweep: how many, with how many rollouts of each scenario, and at which level each.

A gate with a stored baseline looks up to three times, at once, twice and four times the rollouts. The chance
to be wrong is spent over all planned looks (Lan and DeMets 1983, "Discrete Sequential Boundaries for Clinical
Trials"); the shares are summed, so they hold whatever the looks have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.gate import GATE_EXTEND, GATE_SEQUENTIAL
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.gate.sequential import Planned
    from pytest_tfgrpo.metrics.comparison import Sweeps, Tally

ALPHA = 0.025
"""One-sided chance of each answer to be wrong, over all looks."""
TIMES = (1, 2, 4)
"""Rollouts of each look, as multiples of those of the first."""
SHARES = (0.8, 0.1, 0.1)
"""Of the level, for each look."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a final sweep."""

    after: Mapping[str, Tally]
    """Tallies of the sweep as far as it had got."""
    level: float = ALPHA
    """One-sided chance that a bound made at this look is wrong."""
    rollouts: int = 0
    """Of each scenario; 0 where nobody counted."""
    before: Mapping[str, Tally] | None = None
    """Tallies of a control as far as it had got beside the sweep; None: all that there is was there."""


def one_look(after: Mapping[str, Tally]) -> tuple[Look, ...]:
    """Return the only look at a sweep that was planned with one."""
    return (Look(after),)


def planned_rollouts(run: Planned, first: int, *, stored: bool) -> tuple[int, ...]:
    """Return the rollouts of each scenario at the looks that a gate may take, `first` at the first.

    `stored` says whether a stored baseline is compared with; without one, and where more rollouts of the
    same scenarios cannot be had, there is one look (decision 21a).
    """
    settings = run.settings
    one = not stored or not GATE_EXTEND.recorded(settings) or GATE_SEQUENTIAL.of(settings)
    if one or run.partial_selection or any(s.checker and s.split == "eval" for s in run.scenarios):
        return (first,)
    return tuple(first * times for times in TIMES)


def looks_at(run: Run, sweeps: Sweeps, *, stored: bool) -> tuple[Look, ...]:
    """Return the looks that were taken at the final sweep of `run`, in order; none without a sweep."""
    sweep = sweeps.after
    if sweep is None:
        return ()
    made = sweep.phase.rollouts
    first = EVAL_ROLLOUTS.of(run.settings) or made
    planned = planned_rollouts(run, first, stored=stored or made > first)
    if made not in planned or len(planned) == 1:
        return one_look(sweeps.rows_after)
    return tuple(
        Look(sweeps.rows_after, ALPHA * share, rollouts)
        if rollouts == made
        else Look(sweeps.rows_until(rollouts), ALPHA * share, rollouts, sweeps.control_until(rollouts))
        for rollouts, share in zip(planned, SHARES, strict=True)
        if rollouts <= made
    )
