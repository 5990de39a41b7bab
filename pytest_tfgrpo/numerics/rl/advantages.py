"""Ranks and advantages within groups, vectorised over all groups of an epoch.

Axis ``_N`` runs over rollouts, ``_K`` over groups, ``_M`` over scored rollouts sorted by group and value.
NaN means not scored: such a rollout gets NaN and has no influence on its group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Floats, Ints, Reals, np, reals
from pytest_tfgrpo.numerics.rl.normalise import whiten
from pytest_tfgrpo.numerics.rl.returns import gae_tokens

if TYPE_CHECKING:
    import numpy.typing as npt

Scale = Literal["group", "batch", "none"]
Singleton = Literal["zero", "raw"]
Unscored = Literal["zero", "nan"]


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
    values = np.asarray(values_N, dtype=np.float64)
    found = grpo_advantage(values, group_N, ddof=0, eps=0.0, unscored="nan")
    return found.astype(np.float64, copy=False)


def grpo_advantage(
    rewards_N: npt.ArrayLike,
    group_N: npt.ArrayLike,
    *,
    scale: Scale = "group",
    ddof: int = 1,
    eps: float = 1e-4,
    singleton: Singleton = "zero",
    unscored: Unscored = "zero",
) -> Reals:
    """Return (reward - group mean) / (std + `eps`), [N]; exactly 0 in a group whose rewards are all equal.

    `scale` says over what the deviation is taken: "group" (Shao et al. 2024), "batch" (Hu et al. 2025,
    "REINFORCE++"), "none" (Liu et al. 2025, "Dr. GRPO"). Defaults are TRL's; verl has `eps` 1e-6 and, for a
    group of one, its reward over 1 + `eps` (`singleton` "raw"); a prompt that was tried once says nothing of
    which try is better, so that the default is 0. A NaN reward is unscored: no influence on its group, and 0
    or NaN itself. Raises ValueError for an infinite reward, and as `relative_rank` does.
    """
    (given,) = reals(rewards_N=rewards_N)
    x_N, g_N = _checked(given, group_N)
    m = _sorted(x_N, g_N)
    advantage_N = np.full(x_N.shape, np.nan if unscored == "nan" else 0.0)
    if m.order_M.size:
        if scale == "group":
            found_M = _standardised(m, ddof, eps)
        elif scale == "batch":
            width = _deviation(m.x_M, ddof) + eps
            found_M = _centred(m) / width if width else _centred(m)
        else:
            found_M = _centred(m)
        if singleton == "raw":
            alone_M = m.x_M / (1 if scale == "none" else 1 + eps)
            found_M = np.where(m.size_M == 1, alone_M, found_M)
        advantage_N[m.order_M] = found_M
    return advantage_N.astype(given.dtype, copy=False)


def rloo_advantage(
    rewards_N: npt.ArrayLike,
    group_N: npt.ArrayLike,
    *,
    normalise: bool = False,
    eps: float = 1e-4,
    singleton: Singleton = "zero",
    unscored: Unscored = "zero",
) -> Reals:
    """Return the reward less the mean of the others in its group, [N]: leave one out.

    Ahmadian et al. 2024, "Back to Basics". `normalise` whitens over all that are scored, as TRL's trainer
    can: mean 0, and sample deviation + `eps` 1. Else as `grpo_advantage`.
    """
    (given,) = reals(rewards_N=rewards_N)
    x_N, g_N = _checked(given, group_N)
    m = _sorted(x_N, g_N)
    advantage_N = np.full(x_N.shape, np.nan if unscored == "nan" else 0.0)
    if m.order_M.size:
        found_M = _centred(m) * m.size_M / np.maximum(m.size_M - 1, 1)
        if normalise:
            counted_M = (m.size_M > 1) | (singleton == "raw")
            deviation = _deviation(found_M[counted_M], 1)  # their mean is 0 already, group by group
            found_M = np.where(counted_M, found_M / (deviation + eps), 0.0)
        if singleton == "raw":
            found_M = np.where(m.size_M == 1, m.x_M, found_M)
        advantage_N[m.order_M] = found_M
    return advantage_N.astype(given.dtype, copy=False)


def reinforce_plus_plus(
    rewards_BT: npt.ArrayLike, mask_BT: npt.ArrayLike, *, gamma: float = 1.0, mask_eps: float = 0.0
) -> tuple[Reals, Reals]:
    """Return advantages (whitened over all tokens that count) and returns, [B, T]; 0 where they are masked.

    Hu et al. 2025, "REINFORCE++", as verl computes it: tokens that are masked are passed over. Raises
    ValueError as `returns.gae_tokens` does, and as `normalise.whiten` where fewer than two tokens count.
    """
    (rewards,) = reals(rewards_BT=rewards_BT)
    found = gae_tokens(rewards, np.zeros_like(rewards), mask_BT, gamma=gamma, lam=1.0)[1]
    return whiten(found, mask_BT, mask_eps=mask_eps), found


def per_rollout(
    rewards_R: npt.ArrayLike,
    rollout_R: npt.ArrayLike,
    group_R: npt.ArrayLike,
    advantage: Callable[[Reals, Ints], Reals] = grpo_advantage,
) -> Reals:
    """Return the advantage of each training row, [R], computed once for its rollout.

    A rollout of several turns makes several rows; counted by rows, long rollouts would move the mean of their
    group. Raises ValueError where rows of one rollout differ in reward or group, and as `advantage` does.
    """
    (given,) = reals(rewards_R=rewards_R)
    rewards, groups = _checked(given, group_R)
    rollouts = np.asarray(rollout_R)
    _, first, row = np.unique(rollouts, return_index=True, return_inverse=True)
    equal = (rewards == rewards[first][row]) | (np.isnan(rewards) & np.isnan(rewards[first][row]))
    for name, same in (("reward", equal), ("group", groups == groups[first][row])):
        if not same.all():
            raise ValueError(f"rows of rollout {rollouts[int((~same).argmax())]!r} differ in their {name}")
    return advantage(given[first], groups[first])[row]


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
    if (infinite_N := np.isinf(x_N)).any():
        place = int(infinite_N.argmax())
        raise ValueError(f"values must be finite or NaN, got {float(x_N[place])} at [{place}]")
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


def _centred(m: _Sorted) -> Floats:
    """Return values less their group's mean; exactly 0 where all of a group are equal."""
    low_M = m.x_M[m.start_M]
    above_M = m.x_M - low_M
    return above_M - _group_mean(above_M, m)


def _standardised(m: _Sorted, ddof: int, eps: float) -> Floats:
    """Return (value - group mean) / (std + eps).

    Dividing by the spread first keeps tiny deviations from vanishing when they are squared.
    """
    low_M = m.x_M[m.start_M]
    spread_M = m.x_M[m.start_M + m.size_M - 1] - low_M
    differs_M = spread_M > 0
    unit_M = np.divide(m.x_M - low_M, spread_M, out=np.zeros_like(m.x_M), where=differs_M)
    centred_M = unit_M - _group_mean(unit_M, m)
    std_M = np.sqrt(_group_mean(centred_M**2, m) * (m.size_M / np.maximum(m.size_M - ddof, 1)))
    with np.errstate(over="ignore"):  # a spread that is nothing beside eps gives 0
        width_M = std_M + np.divide(eps, spread_M, out=np.zeros_like(m.x_M), where=differs_M)
    found_M: Floats = np.divide(centred_M, width_M, out=np.zeros_like(m.x_M), where=differs_M)
    return found_M


def _deviation(values: Floats, ddof: int) -> float:
    return float(values.std(ddof=ddof)) if values.size > ddof else 0.0
