"""Intervals for means over scenarios: the scenario is the unit, its rollouts are one cluster (axis ``_K``).

Which method an interval uses depends on the sample alone:

* fewer than 8 scenarios: none, the mean stands alone;
* no variance: an exact binomial bound on the share of scenarios that would differ;
* fewer than 40: the sign-flip test inverted, exact for symmetric distributions;
* otherwise: the bias-corrected and accelerated bootstrap (BCa).

Everything is deterministic for a given seed.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Method = Literal["none", "exact", "sign_flip", "bca"]

MIN_INTERVAL = 8
MIN_BCA = 40
_NO_SPREAD = 1e-12
"""Differences of equal shares differ by rounding; that is no variance."""
_ENUMERATE = 13
"""Up to this many values all 2^n - 1 subsets are used; above, a random sample of them."""
_DRAWS = 20_000_000
"""Most values drawn for one interval, so that very large suites stay fast."""
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """A mean over scenarios with its confidence interval."""

    n: int
    """Scenarios."""
    mean: float
    """NaN when n is 0."""
    std: float
    """Sample standard deviation over scenarios; NaN when n < 2."""
    low: float | None
    high: float | None
    method: Method


def mean_interval(
    values_K: npt.ArrayLike,
    *,
    support: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """Return the mean of `values_K` and its interval; values lie in `support`, NaN is not allowed.

    Raises ValueError on a matrix or on values outside `support`.
    """
    x_K = np.asarray(values_K, dtype=np.float64)
    if x_K.ndim != 1:
        raise ValueError(f"values must be a vector, got shape {x_K.shape}")
    if not np.all((x_K >= support[0] - _NO_SPREAD) & (x_K <= support[1] + _NO_SPREAD)):
        raise ValueError(f"values must lie in [{support[0]:g}, {support[1]:g}]")
    n, alpha = x_K.size, 1.0 - level
    mean = float(x_K.mean()) if n else math.nan
    std = float(x_K.std(ddof=1)) if n > 1 else math.nan
    if n < MIN_INTERVAL:
        return Interval(n, mean, std, None, None, "none")
    method: Method
    if np.ptp(x_K) <= _NO_SPREAD:
        method, (low, high) = "exact", _no_variance(mean, n, support, alpha)
        std = 0.0
    elif n < MIN_BCA:
        method, (low, high) = "sign_flip", _sign_flip(x_K, alpha, seed, resamples)
    else:
        method, (low, high) = "bca", _bca(x_K, alpha, seed, resamples)
    return Interval(n, mean, std, low, high, method)


def paired_interval(
    before_K: npt.ArrayLike,
    after_K: npt.ArrayLike,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """Return the mean of ``after - before`` over paired scenarios, both in [0, 1], and its interval."""
    a_K, b_K = np.asarray(before_K, dtype=np.float64), np.asarray(after_K, dtype=np.float64)
    if a_K.shape != b_K.shape:
        raise ValueError(f"pairs must have one length, got {a_K.shape} and {b_K.shape}")
    return mean_interval(b_K - a_K, support=(-1.0, 1.0), level=level, seed=seed, resamples=resamples)


def one_sided_p(
    differences_K: npt.ArrayLike,
    *,
    shift: float = 0.0,
    alternative: Literal["greater", "less"] = "greater",
    seed: int = 0,
    resamples: int = 10_000,
) -> float:
    """Return the one-sided sign-flip p of paired differences: that their mean lies above (below) `shift`.

    Under the null hypothesis each ``difference - shift`` is as likely with the other sign: Fisher 1935, "The
    Design of Experiments", section 21. All sign patterns are used for few values, else a random sample of
    them with the pattern seen added (Phipson and Smyth 2010, "Permutation P-values Should Never Be Zero"), so
    that p is never 0. Without any value p is 1. Raises ValueError on a matrix and on values not finite.
    """
    x_K = np.asarray(differences_K, dtype=np.float64) - shift
    if x_K.ndim != 1 or not np.isfinite(x_K).all():
        raise ValueError(f"differences must be a vector of finite numbers, got shape {x_K.shape}")
    if not x_K.size:
        return 1.0
    if alternative == "less":
        x_K = -x_K
    seen, slack = x_K.sum(), _NO_SPREAD * np.abs(x_K).sum()
    if x_K.size <= _ENUMERATE:
        signs_BK = 1.0 - 2.0 * ((np.arange(2**x_K.size)[:, None] >> np.arange(x_K.size)) & 1)
        return float(np.mean(signs_BK @ x_K >= seen - slack))
    reached = np.count_nonzero(_flipped_sums(x_K, seed, resamples) >= seen - slack)
    return float((reached + 1) / (resamples + 1))


def holm(p_M: npt.ArrayLike) -> Floats:
    """Return the p values adjusted for the M tests that were made; a NaN is no test and stays NaN.

    Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure": valid under any dependence. Raises
    ValueError on a matrix and on values outside [0, 1].
    """
    p = np.asarray(p_M, dtype=np.float64)
    known = ~np.isnan(p)
    if p.ndim != 1 or np.any((p[known] < 0) | (p[known] > 1)):
        raise ValueError(f"p values must be a vector in [0, 1], got {p!r}")
    adjusted, made = np.full(p.shape, np.nan), p[known]
    order = np.argsort(made, kind="stable")
    factors = np.arange(made.size, 0, -1)
    stepped = np.empty(made.size)
    stepped[order] = np.minimum(np.maximum.accumulate(factors * made[order]), 1.0)
    adjusted[known] = stepped
    return adjusted


def zero_event_bound(n: int, alpha: float) -> float:
    """Return the upper bound of a rate, at confidence 1 - `alpha`, when none of `n` trials had the event.

    The p that solves ``(1 - p)^n = alpha``: the one-sided bound of Clopper and Pearson 1934, "The use of
    confidence or fiducial limits illustrated in the case of the binomial", for zero events.
    """
    return float(-math.expm1(math.log(alpha) / n))


def pass_at_k(n_K: npt.ArrayLike, c_K: npt.ArrayLike, k: int) -> Floats:
    """Return the unbiased chance that one of `k` attempts passes, given `c_K` passes in `n_K` attempts.

    ``1 - C(n-c, k) / C(n, k)``, Chen et al. 2021, "Evaluating Large Language Models Trained on Code"; NaN
    where n < k. Raises ValueError unless 0 <= c <= n and k >= 1.
    """
    n, c = np.broadcast_arrays(np.asarray(n_K, dtype=np.float64), np.asarray(c_K, dtype=np.float64))
    if k < 1 or np.any(c < 0) or np.any(c > n):
        raise ValueError("pass@k needs k >= 1 and 0 <= passes <= attempts")
    j = np.arange(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        none_pass = np.prod(np.clip((n - c)[..., None] - j, 0, None) / (n[..., None] - j), axis=-1)
    return np.where(n < k, np.nan, 1.0 - none_pass)


def minimum_detectable_effect(std: float, n: int, *, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest true difference that `n` scenarios show with this power (normal approximation).

    Miller 2024, "Adding Error Bars to Evals", section 5.
    """
    return (_z(level) + _NORMAL.inv_cdf(power)) * std / math.sqrt(n)


def settling_n(difference: Interval, margin: float, *, level: float = 0.95) -> int | None:
    """Return how many scenarios would settle a comparison, should mean and spread stay as they are.

    Settled means: the lower bound is above -`margin`, or the upper bound is below 0 (decision 21a). None when
    no number does (a mean on the edge, or nothing measured).
    """
    d, above, below = difference.mean, difference.mean + margin, -difference.mean
    if math.isnan(difference.std) or max(above, below) <= _NO_SPREAD:
        return None
    if difference.std <= _NO_SPREAD:
        rates = [a / b for a, b in ((above, d + 1.0), (below, 1.0 - d)) if a > _NO_SPREAD]
        needed = [math.log(1.0 - level) / math.log1p(-min(rate, 1.0 - _NO_SPREAD)) for rate in rates]
    else:
        needed = [(_z(level) * difference.std / room) ** 2 for room in (above, below) if room > _NO_SPREAD]
    return max(math.floor(min(needed)) + 1, difference.n + 1, MIN_INTERVAL)


def _z(level: float) -> float:
    return _NORMAL.inv_cdf(0.5 + level / 2)


def _no_variance(c: float, n: int, support: tuple[float, float], alpha: float) -> tuple[float, float]:
    """Bound the mean when all n values are c: at most a share p differs, by as much as the support allows."""
    p = zero_event_bound(n, alpha)
    return c - p * (c - support[0]), c + p * (support[1] - c)


def _sign_flip(x_K: Floats, alpha: float, seed: int, resamples: int) -> tuple[float, float]:
    """Invert the two-sided sign-flip test of the mean.

    Flipping the signs of ``x - theta`` in a subset raises their sum if and only if the subset's mean is below
    theta, so the interval runs between quantiles of subset means: Hartigan 1969, "Using Subsample Values as
    Typical Values". Axis ``_B`` runs over subsets.
    """
    n = x_K.size
    if n <= _ENUMERATE:
        chosen_BK = (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1
    else:
        chosen_BK = np.random.default_rng(seed).integers(0, 2, size=(resamples - 1, n))
        chosen_BK = chosen_BK[chosen_BK.any(axis=1)]
    means_B = np.sort(chosen_BK @ x_K / chosen_BK.sum(axis=1))
    # The subset that flips nothing counts as extreme on both sides.
    k = math.floor(alpha / 2 * (means_B.size + 1)) - 1
    return float(means_B[k]), float(means_B[-1 - k])


def _flipped_sums(x_K: Floats, seed: int, resamples: int) -> Floats:
    """Return sums of `x_K` under random signs, eight values at a time: one random byte picks their signs."""
    rng = np.random.default_rng(seed)
    signs_8 = 1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    sums_B = np.zeros(resamples)
    for start in range(0, x_K.size, 8):
        part = x_K[start : start + 8]
        sums_B += (signs_8[:, : part.size] @ part)[rng.integers(0, 256, size=resamples, dtype=np.uint8)]
    return sums_B


def _bca(x_K: Floats, alpha: float, seed: int, resamples: int) -> tuple[float, float]:
    """Return the BCa bootstrap interval of the mean: Efron 1987, "Better Bootstrap Confidence Intervals"."""
    means_B = np.sort(_bootstrap_means(x_K, seed, min(resamples, max(1000, _DRAWS // x_K.size))))
    mean = x_K.mean()
    ranks = np.searchsorted(means_B, [mean - _NO_SPREAD, mean + _NO_SPREAD], side="right")
    share = float(np.clip(ranks.mean() / means_B.size, 1 / (means_B.size + 1), 1 - 1 / (means_B.size + 1)))
    bias = _NORMAL.inv_cdf(share)
    centred_K = x_K - mean
    # The jackknife values of a mean are linear in the data, which leaves the skewness of the sample.
    acceleration = float((centred_K**3).sum() / (6.0 * (centred_K**2).sum() ** 1.5))

    def bound(tail: float) -> float:
        z = bias + _NORMAL.inv_cdf(tail)
        return float(np.quantile(means_B, _NORMAL.cdf(bias + z / (1.0 - acceleration * z))))

    return bound(alpha / 2), bound(1.0 - alpha / 2)


def _bootstrap_means(x_K: Floats, seed: int, resamples: int) -> Floats:
    rng = np.random.default_rng(seed)
    values, counts = np.unique(x_K, return_counts=True)
    if values.size * 8 <= x_K.size:  # shares of G rollouts take few values: draw how often each occurs
        drawn_BV = rng.multinomial(x_K.size, counts / x_K.size, size=resamples)
        return np.asarray(drawn_BV @ values / x_K.size, dtype=np.float64)
    rows = max(1, 1_000_000 // x_K.size)
    parts = [
        x_K[rng.integers(0, x_K.size, size=(min(rows, resamples - start), x_K.size), dtype=np.int32)].mean(
            axis=1
        )
        for start in range(0, resamples, rows)
    ]
    return np.concatenate(parts)
