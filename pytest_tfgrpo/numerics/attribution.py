"""The effect of one lesson, from groups whose prompts carried it or not by a known chance (axis ``_K``).

The estimate is the difference of inverse-propensity weighted means (Hajek 1971), adjusted for a covariate by
a weighted regression with interaction: Lin 2013, "Agnostic notes on regression adjustments to experimental
data".
Its interval is the wider of two, and its p value the larger:

* sandwich: robust to clusters (Liang and Zeger 1986), residuals divided by ``sqrt(1 - leverage)`` (MacKinnon
  and White 1985), degrees of freedom by Satterthwaite 1946; right for any effects, but blind where an arm has
  almost no variance;
* randomisation, for all but large arms that vary: the chance draws made again, exact for any outcomes when
  the effect is the same everywhere (Fisher 1935), inverted as Hartigan 1969 does; wrong where the lesson
  changes the spread.

Everything is deterministic.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.resampling import student_quantile, student_tail
from pytest_tfgrpo.numerics.stats import zero_event_bound

if TYPE_CHECKING:
    import numpy.typing as npt

MIN_ARM = 30
"""Groups with the lesson, and groups without, below which its effect is not yet estimable."""
MIN_CLUSTERS = 8
"""Scenarios below which it is not, however many groups they made."""
_ELEMENTS = 10_000_000
_AT_ONCE = 500_000
"""Chances of those drawn together: the allocator keeps the room of larger arrays for good."""
_REGULAR_ARM = 1000
_REGULAR_EVENTS = 50.0
_TINY = 1e-12
_NORMAL = NormalDist()


class Trials(NamedTuple):
    """Groups that a lesson was selected for, each with an outcome of its own draw."""

    z_K: npt.NDArray[np.bool_]
    """Whether the prompt carried it."""
    propensity_K: Floats
    """Chance of that, in (0, 1)."""
    y_K: Floats
    """Outcome, in [0, 1]."""
    x_K: Floats
    """Covariate, settled before the draw."""
    cluster_K: npt.NDArray[np.intp]
    """Scenario, from 0."""
    stratum_K: npt.NDArray[np.intp]
    """Stratum, from 0: groups are compared within it."""


class Effect(NamedTuple):
    """What a lesson adds to the outcome."""

    included: int
    left_out: int
    clusters: int
    effect: float | None
    """Mean outcome with it minus without; None while it is not estimable."""
    low: float | None
    high: float | None
    p: float
    """Two-sided p of no effect; NaN while it is not estimable."""


def estimate(trials: Trials, *, level: float = 0.95, draws: int = 2000) -> Effect:
    """Return the effect of a lesson; `draws` is how often the chance is made again, fewer for many groups.

    Raises ValueError on arrays of different lengths, on outcomes outside [0, 1] and on propensities outside
    (0, 1).
    """
    _require_sound(trials)
    z_K, y_K = trials.z_K, trials.y_K
    n1 = int(z_K.sum())
    n0 = z_K.size - n1
    clusters = int(np.unique(trials.cluster_K).size)
    if min(n1, n0) < MIN_ARM or clusters < MIN_CLUSTERS:
        return Effect(n1, n0, clusters, None, None, None, math.nan)
    if np.ptp(y_K) <= _TINY:
        low, high = _no_variance(float(y_K[0]), n1, n0, 1.0 - level)
        return Effect(n1, n0, clusters, 0.0, low, high, 1.0)
    effect, error, df = _adjusted(trials)
    room = student_quantile(0.5 + level / 2, df) * error
    low, high = effect - room, effect + room
    p = student_tail(abs(effect) / error, df) if error > _TINY else 0.0
    if not _is_regular(trials):
        by_chance = _redrawn(trials, 1.0 - level, draws)
        low, high, p = min(low, by_chance[0]), max(high, by_chance[1]), max(p, by_chance[2])
    # covariates may carry all three beyond the largest difference that there can be
    effect, low, high = (max(-1.0, min(value, 1.0)) for value in (effect, low, high))
    return Effect(n1, n0, clusters, effect, low, high, min(p, 1.0))


def draws_for(lessons: int) -> int:
    """Return how many draws let the smallest p value survive a correction for `lessons` tests."""
    return 2000 + 80 * lessons


def _require_sound(trials: Trials) -> None:
    sizes = {array.shape for array in trials}
    if len(sizes) != 1 or len(trials.z_K.shape) != 1:
        raise ValueError(f"trials must be vectors of one length, got {[array.shape for array in trials]}")
    if not np.all((trials.y_K >= -_TINY) & (trials.y_K <= 1 + _TINY)):
        raise ValueError("outcomes must lie in [0, 1]")
    if not np.all((trials.propensity_K > 0) & (trials.propensity_K < 1)):
        raise ValueError("propensities must lie in (0, 1)")
    if not np.all(np.isfinite(trials.x_K)):
        raise ValueError("covariates must be finite")


def _adjusted(trials: Trials) -> tuple[float, float, float]:
    """Return effect, standard error and degrees of freedom of the weighted regression."""
    z_K, p_K = trials.z_K.astype(np.float64), trials.propensity_K
    w_K = z_K / p_K + (1.0 - z_K) / (1.0 - p_K)
    x_K = trials.x_K - trials.x_K.mean()
    X_KJ = np.column_stack([z_K, np.ones_like(z_K), x_K, z_K * x_K, _strata(trials.stratum_K)])
    WX_KJ = w_K[:, None] * X_KJ
    bread_JJ = np.linalg.pinv(X_KJ.T @ WX_KJ, hermitian=True)
    beta_J = bread_JJ @ (WX_KJ.T @ trials.y_K)
    c_K = WX_KJ @ bread_JJ[0]  # the effect is c @ y
    leverage_K = np.einsum("kj,ji,ki->k", WX_KJ, bread_JJ, X_KJ)
    e_K = (trials.y_K - X_KJ @ beta_J) / np.sqrt(np.clip(1.0 - leverage_K, 0.01, 1.0))
    u_G = np.bincount(trials.cluster_K, weights=c_K * e_K)
    v_G = np.bincount(trials.cluster_K, weights=c_K**2)
    df = float(v_G.sum() ** 2 / (v_G**2).sum())
    return float(beta_J[0]), float(np.sqrt((u_G**2).sum())), df


def _is_regular(trials: Trials) -> bool:
    """Return whether both arms are so large and varied that the sandwich alone is right."""
    arms = (trials.y_K[trials.z_K], trials.y_K[~trials.z_K])
    return all(y.size >= _REGULAR_ARM and y.size * y.var() >= _REGULAR_EVENTS for y in arms)


def _strata(stratum_K: npt.NDArray[np.intp]) -> Floats:
    """Return one centred column for each stratum but the first."""
    member_KS = (stratum_K[:, None] == np.unique(stratum_K)[None, 1:]).astype(np.float64)
    centred_KS: Floats = member_KS - member_KS.mean(axis=0)
    return centred_KS


def _redrawn(trials: Trials, alpha: float, draws: int) -> tuple[float, float, float]:
    """Return the interval and the two-sided p value of the randomisation test.

    With e the outcomes and d the draw, both less what covariate and strata explain, and D_b the weighted
    difference under draw b, the test of an effect t compares ``D(e) - t D(d)`` with ``D_b(e) - t D_b(d)``: it
    turns at ``t_b = (D(e) - D_b(e)) / (D(d) - D_b(d))``, so the bounds are quantiles of t_b.
    """
    p_K = trials.propensity_K
    x_K = trials.x_K - trials.x_K.mean()
    nuisance_KJ = np.column_stack([np.ones_like(x_K), x_K, _strata(trials.stratum_K)])
    target_K2 = np.column_stack([trials.y_K, trials.z_K.astype(np.float64)])
    target_K2 = target_K2 - nuisance_KJ @ (np.linalg.pinv(nuisance_KJ) @ target_K2)
    n = p_K.size
    draws = min(draws, max(_ELEMENTS // n, 1000))
    rng = np.random.default_rng(n)
    parts = []
    for start in range(0, draws, rows := max(1, _AT_ONCE // n)):
        drawn_BK = rng.random((min(rows, draws - start), n), dtype=np.float32) < p_K.astype(np.float32)
        parts.append(_differences(drawn_BK, p_K, target_K2))
    D_B2 = np.concatenate(parts)
    D_2 = _differences(trials.z_K[None, :], p_K, target_K2)[0]
    above_B2 = D_2 - D_B2
    known_B = np.isfinite(above_B2).all(axis=1) & (above_B2[:, 1] > _TINY)
    t_B = np.sort(above_B2[known_B, 0] / above_B2[known_B, 1])
    if not t_B.size:
        return -1.0, 1.0, 1.0
    k = max(math.floor(alpha / 2 * (t_B.size + 1)) - 1, 0)
    below, over = int((t_B <= _TINY).sum()) + 1, int((t_B >= -_TINY).sum()) + 1
    return float(t_B[k]), float(t_B[-1 - k]), min(1.0, 2.0 * min(below, over) / (t_B.size + 1))


def _differences(drawn_BK: npt.NDArray[np.bool_], p_K: Floats, target_K2: Floats) -> Floats:
    """Return the weighted difference of means of each target under each draw; NaN where an arm is empty."""
    with_K4 = np.column_stack([target_K2 / p_K[:, None], 1.0 / p_K, 1.0 / (1.0 - p_K)])
    without_K2 = target_K2 / (1.0 - p_K)[:, None]
    columns_K6 = np.column_stack([with_K4, without_K2]).astype(np.float32)
    sums_B6 = (drawn_BK.astype(np.float32) @ columns_K6).astype(np.float64)
    totals_6 = columns_K6.sum(axis=0, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        included_B2 = sums_B6[:, :2] / sums_B6[:, 2:3]
        left_out_B2 = (totals_6[4:] - sums_B6[:, 4:]) / (totals_6[3] - sums_B6[:, 3:4])
        difference_B2: Floats = included_B2 - left_out_B2
    return difference_B2


def _no_variance(c: float, n1: int, n0: int, alpha: float) -> tuple[float, float]:
    """Bound the effect when all outcomes are c: in each arm at most a share b differs, as far as it can."""
    b1, b0 = zero_event_bound(n1, alpha / 2), zero_event_bound(n0, alpha / 2)
    return -(b1 * c + b0 * (1.0 - c)), b1 * (1.0 - c) + b0 * c
