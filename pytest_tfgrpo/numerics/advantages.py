"""Ranks and advantages within groups, vectorised over all groups of an epoch.

Axis ``_N`` runs over rollouts, ``_K`` over groups, ``_M`` over scored rollouts sorted by group and value.
NaN means not scored: such a rollout gets NaN and has no influence on its group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.arrays import Floats, Ints

Bools = npt.NDArray[np.bool_]


def relative_rank(values_N: npt.ArrayLike, group_N: npt.ArrayLike) -> Floats:
    """Return ``(#worse + #tied others / 2) / (n - 1)`` within each group; NaN where n < 2 (decision 10).

    `values_N` are finite or NaN, `group_N` integers >= 0 in any order; raises ValueError on other input.
    """
    x_N, g_N = _checked(values_N, group_N)
    rank_N = np.full(x_N.shape, np.nan)
    m = _sorted(x_N, g_N)
    if m.order_M.size:
        tie_start_M, tie_size_M = _segments(m.new_M | np.r_[True, m.x_M[1:] != m.x_M[:-1]])
        worse_M = tie_start_M - m.start_M
        others_M = np.where(m.size_M > 1, m.size_M - 1.0, np.nan)
        rank_N[m.order_M] = (worse_M + (tie_size_M - 1) / 2) / others_M
    return rank_N


def group_advantage(values_N: npt.ArrayLike, group_N: npt.ArrayLike) -> Floats:
    """Return (value - group mean) / population std of the group; exactly 0 when max == min (decision 11).

    Shao et al. 2024, "DeepSeekMath", equation 3 ff. Raises ValueError as `relative_rank` does.
    """
    x_N, g_N = _checked(values_N, group_N)
    advantage_N = np.full(x_N.shape, np.nan)
    m = _sorted(x_N, g_N)
    if m.order_M.size:
        low_M = m.x_M[m.start_M]
        spread_M = m.x_M[m.start_M + m.size_M - 1] - low_M
        # Standardising is invariant under scale: dividing by the spread first keeps tiny deviations from
        # vanishing when they are squared.
        unit_M = np.divide(m.x_M - low_M, spread_M, out=np.zeros_like(m.x_M), where=spread_M > 0)
        centred_M = unit_M - _group_mean(unit_M, m)
        std_M = np.sqrt(_group_mean(centred_M**2, m))
        advantage_N[m.order_M] = np.divide(centred_M, std_M, out=np.zeros_like(m.x_M), where=spread_M > 0)
    return advantage_N


def informative(values_N: npt.ArrayLike, group_N: npt.ArrayLike) -> Bools:
    """Return for each group 0..max(`group_N`) whether its scored values have spread (decision 12)."""
    x_N, g_N = _checked(values_N, group_N)
    spread_K = np.zeros(int(g_N.max()) + 1 if g_N.size else 0, dtype=np.bool_)
    m = _sorted(x_N, g_N)
    if m.order_M.size:
        last_M = m.x_M[m.start_M + m.size_M - 1]
        spread_K[g_N[m.order_M]] = last_M != m.x_M[m.start_M]
    return spread_K


class _Sorted(NamedTuple):
    order_M: Ints
    """Place of each sorted value among the N."""
    x_M: Floats
    new_M: Bools
    """True at the first value of each group."""
    start_M: Ints
    size_M: Ints


def _checked(values_N: npt.ArrayLike, group_N: npt.ArrayLike) -> tuple[Floats, Ints]:
    x_N = np.asarray(values_N, dtype=np.float64)
    g_N = np.asarray(group_N)
    if x_N.ndim != 1 or g_N.shape != x_N.shape:
        raise ValueError(f"values and groups must be vectors of one length, got {x_N.shape} and {g_N.shape}")
    if g_N.size and (not np.issubdtype(g_N.dtype, np.integer) or g_N.min() < 0):
        raise ValueError("groups must be non-negative integers")
    if np.isinf(x_N).any():
        raise ValueError("values must be finite or NaN")
    return x_N, g_N.astype(np.intp)


def _sorted(x_N: Floats, g_N: Ints) -> _Sorted:
    known = np.flatnonzero(~np.isnan(x_N))
    order_M = known[np.lexsort((x_N[known], g_N[known]))]
    g_M = g_N[order_M]
    new_M = np.ones(order_M.size, dtype=np.bool_)
    new_M[1:] = g_M[1:] != g_M[:-1]
    return _Sorted(order_M, x_N[order_M], new_M, *_segments(new_M))


def _segments(first_M: Bools) -> tuple[Ints, Ints]:
    """Return start and size of the segment that each element is in; `first_M` marks segment starts."""
    starts = np.flatnonzero(first_M)
    sizes = np.diff(starts, append=first_M.size)
    place_M = np.cumsum(first_M) - 1
    return starts[place_M], sizes[place_M]


def _group_mean(y_M: Floats, m: _Sorted) -> Floats:
    group_M = np.cumsum(m.new_M) - 1
    mean_M: Floats = np.bincount(group_M, weights=y_M)[group_M] / m.size_M
    return mean_M
