"""Cells: what rollouts show of lessons, as sums over those that carried the same lessons in one scenario.

Sums suffice for the regression of `effect_model`. Scenarios of which the same is known are one kind: what the
regression says of one it says of all, so that many scenarios cost little more than their kinds.

Axes: ``_R`` rollouts, ``_S`` scenarios, ``_L`` lessons, ``_C`` cells, ``_K`` kinds of scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Floats, Ints, np

_TINY = 1e-12


class Cells(NamedTuple):
    """Rollouts that carried the same lessons in one scenario, in order of scenario."""

    scenario_C: Ints
    carried_CL: Bools
    n_C: Floats
    """Rollouts with a score."""
    sum_C: Floats
    """Of their scores, in [0, 1]."""
    square_C: Floats
    """Sum of their squares."""
    errors_C: Floats
    """Rollouts without a score."""

    @property
    def sums(self) -> tuple[Floats, ...]:
        """What adds up."""
        return self.n_C, self.sum_C, self.square_C, self.errors_C

    @property
    def scored(self) -> Cells:
        """The cells without errors."""
        kept = self._where(self.n_C > 0)
        return kept._replace(errors_C=np.zeros_like(kept.n_C))

    @property
    def errors_as_zero(self) -> Cells:
        """The cells with 0 as the score of an error."""
        return self._replace(n_C=self.n_C + self.errors_C, errors_C=np.zeros_like(self.n_C))

    def within(self, among_S: Bools) -> Cells:
        """Return the cells of some scenarios."""
        return self._where(among_S[self.scenario_C])

    def _where(self, kept_C: Bools) -> Cells:
        sums = (values[kept_C] for values in self.sums)
        return Cells(self.scenario_C[kept_C], self.carried_CL[kept_C], *sums)


class Kinds(NamedTuple):
    """Scenarios of which the same is known, as one."""

    cells: Cells
    """Of one scenario of each kind; `scenario_C` are kinds."""
    first_K: Ints
    """That scenario."""
    kind_S: Ints

    @property
    def count_K(self) -> Floats:
        """How many scenarios there are of each kind."""
        return self.sums(np.ones(self.kind_S.size))

    def sums(self, values_S: Floats) -> Floats:
        """Return the sums over the scenarios of each kind."""
        return np.bincount(self.kind_S, values_S, self.first_K.size).astype(np.float64)


def cells_of(scores_R: Floats, scenarios_R: Ints, carried_RL: Bools, before: Cells | None = None) -> Cells:
    """Return rollouts in cells, added to those of `before`; a score that is NaN is an error.

    Sums add up in the order of the rollouts. Raises ValueError on arrays that do not fit, and on scores
    outside [0, 1].
    """
    if scores_R.ndim != 1 or scenarios_R.shape != scores_R.shape:
        raise ValueError(f"scores and scenarios differ: {scores_R.shape} and {scenarios_R.shape}")
    if carried_RL.ndim != 2 or carried_RL.shape[0] != scores_R.size:
        raise ValueError(f"carried must be rollouts x lessons, got {carried_RL.shape}")
    scored_R = ~np.isnan(scores_R)
    y_R = np.where(scored_R, scores_R, 0.0)
    if not np.all((y_R >= -_TINY) & (y_R <= 1 + _TINY)):
        raise ValueError("scores must lie in [0, 1]")
    y_R = np.clip(y_R, 0.0, 1.0)
    ones_R = scored_R.astype(np.float64)
    rows = Cells(scenarios_R.astype(np.intp), carried_RL, ones_R, y_R, y_R**2, 1.0 - ones_R)
    return _joined([rows] if before is None else [before, rows])


def _joined(parts: Sequence[Cells]) -> Cells:
    """Return cells in order of scenario, those of equal lessons and scenario as one."""
    scenario_R = np.concatenate([part.scenario_C for part in parts])
    carried_RL = np.concatenate([part.carried_CL for part in parts])
    scenario_R4 = scenario_R.astype(">u4")[:, None].view(np.uint8).reshape(scenario_R.size, 4)
    rows_RB = np.column_stack([scenario_R4, np.packbits(carried_RL, axis=1)])
    keys_R = np.ascontiguousarray(rows_RB).view(f"V{rows_RB.shape[1]}").ravel()
    _, first_C, cell_R = np.unique(keys_R, return_index=True, return_inverse=True)
    columns = map(np.concatenate, zip(*(part.sums for part in parts), strict=True))
    sums = (np.bincount(cell_R, values, first_C.size).astype(np.float64) for values in columns)
    return Cells(scenario_R[first_C], carried_RL[first_C], *sums)


def kinds_of(cells: Cells, *known_S: Bools | Ints | Floats) -> Kinds:
    """Return the kinds of scenarios, in order of their first ones.

    Those of one kind have equal cells, and equal rows in each array of `known_S`.
    """
    code_S = np.zeros(len(known_S[0]), dtype=np.intp)
    for values in known_S:
        code_S = _numbered(code_S, values.reshape(code_S.size, -1))
    code_C = _numbered(np.zeros(cells.n_C.size, dtype=np.intp), cells.carried_CL)
    code_C = _numbered(code_C, np.column_stack(cells.sums))
    starts = np.flatnonzero(np.diff(cells.scenario_C, prepend=-1))
    ends = np.append(starts[1:], cells.n_C.size)
    while starts.size:  # the first cell of each scenario, then the second, ...
        at = cells.scenario_C[starts]
        code_S[at] = code_S.max() + 1 + _numbered(code_S[at], code_C[starts][:, None])
        starts, ends = starts[starts + 1 < ends] + 1, ends[starts + 1 < ends]
    _, first_K, kind_S = np.unique(code_S, return_index=True, return_inverse=True)
    order = np.argsort(first_K)
    first_K, kind_S = first_K[order], np.argsort(order)[kind_S]
    of_first = np.zeros(code_S.size, dtype=np.bool_)
    of_first[first_K] = True
    kept = cells.within(of_first)
    return Kinds(kept._replace(scenario_C=kind_S[kept.scenario_C]), first_K, kind_S)


def _numbered(code_S: Ints, rows_SX: Bools | Ints | Floats) -> Ints:
    """Return a number for each pair of a code and a row: equal ones for equal pairs."""
    if not rows_SX.shape[1]:
        return code_S
    bytes_SB = np.ascontiguousarray(rows_SX).view(np.uint8)
    pairs_SB = np.column_stack([code_S[:, None].view(np.uint8), bytes_SB])
    keys_S = np.ascontiguousarray(pairs_SB).view(f"V{pairs_SB.shape[1]}").ravel()
    return np.unique(keys_S, return_inverse=True)[1].astype(np.intp)
