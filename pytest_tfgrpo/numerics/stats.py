"""Intervals and tests for means over scenarios (``_K``), of which those of a family (``_F``) go together.

The family is the unit, its sum and its size; a scenario without one is its own (decision 8). Which method an
interval uses depends on the sample alone, counted in effective families (Kish 1965, "Survey Sampling"):

* fewer than 8: the scenarios are the units, and the interval speaks of just these; under 8 of them none;
* no variance: an exact binomial bound on the share of families that would differ;
* few that differ from the most frequent value (under 6, or under 10 of 40 and more): bounds that reckon with
  values not seen, since a sign test of 5 values rejects nothing and a bootstrap of 9 covers too little;
* fewer than 40: the sign-flip test inverted, exact for symmetric distributions;
* otherwise: the bias-corrected and accelerated bootstrap (BCa), its tails expanded for the sample's size.

Everything is deterministic for a given seed. Numpy is imported in functions: few values need none of it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_tfgrpo.numerics import resampling
from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL, NO_SPREAD, normal_quantile

if TYPE_CHECKING:
    import numpy.typing as npt

Method = Literal["none", "exact", "bounded", "sign_flip", "bca"]

MIN_BCA = 40
MIN_SIGNS, MIN_RESAMPLED = 6, 10
"""Values that must differ from the most frequent one for a sign-flip and for a bootstrap interval."""


class Interval(NamedTuple):
    """A mean over scenarios with its confidence interval."""

    n: int
    """Scenarios."""
    mean: float
    """NaN when n is 0."""
    std: float
    """Standard error of the mean times the root of n: over scenarios that are their own families the sample
    standard deviation. NaN when fewer than two families."""
    low: float | None
    high: float | None
    method: Method
    families: float = 0.0
    """Effective families; 0 where each scenario is its own."""

    @property
    def just_these(self) -> bool:
        """Whether the interval speaks of these scenarios alone, as their families are too few."""
        return self.low is not None and 0 < self.families < MIN_INTERVAL

    @property
    def ci95(self) -> list[float] | None:
        """[low, high]; None where too little is known."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def mean_interval(
    values_K: npt.ArrayLike,
    families_K: Sequence[Hashable] = (),
    *,
    support: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """Return the mean of `values_K` and its interval; values lie in `support`, NaN is not allowed.

    `families_K` are their families; none: each is its own. Raises ValueError on a matrix, on values outside
    `support` and on another number of families than of values.
    """
    if isinstance(values_K, list) and len(values_K) < MIN_INTERVAL:
        few_K = [value for value in values_K if isinstance(value, int | float)]
        if len(few_K) == len(values_K):  # else they are no vector
            return _of_few(few_K, support)
    x_K, drawing = _vector(values_K, support), (support, 1.0 - level, seed, resamples)
    if len(set(families_K)) == len(families_K):
        return _of_scenarios(x_K, *drawing)
    if len(families_K) != x_K.size:
        raise ValueError(f"{len(families_K)} families need as many values, got {x_K.size}")
    effective = effective_families(families_K)
    if effective < MIN_INTERVAL:
        return _of_scenarios(x_K, *drawing)._replace(families=effective)
    return _of_families(x_K, families_K, effective, *drawing)


def _vector(values_K: npt.ArrayLike, support: tuple[float, float]) -> Floats:
    """Return values as a vector; raises ValueError on a matrix and on values outside `support`."""
    x_K = np.asarray(values_K, dtype=np.float64)
    if x_K.ndim != 1:
        raise ValueError(f"values must be a vector, got shape {x_K.shape}")
    if not np.all((x_K >= support[0] - NO_SPREAD) & (x_K <= support[1] + NO_SPREAD)):
        raise ValueError(f"values must lie in [{support[0]:g}, {support[1]:g}]")
    return x_K


def _of_scenarios(
    x_K: Floats, support: tuple[float, float], alpha: float, seed: int, resamples: int
) -> Interval:
    """Return the mean over scenarios and its interval, where each scenario is a unit."""
    n = x_K.size
    mean = float(x_K.mean()) if n else math.nan
    std = float(x_K.std(ddof=1)) if n > 1 else math.nan
    if n < MIN_INTERVAL:
        return Interval(n, mean, std, None, None, "none")
    method: Method
    if np.ptp(x_K) <= NO_SPREAD:
        method, (low, high) = "exact", _no_variance(mean, n, support, alpha)
        std = 0.0
    elif _few_differ(x_K, n):
        method, (low, high) = "bounded", resampling.bounded(x_K, support, alpha, seed, resamples)
    elif n < MIN_BCA:
        method, (low, high) = (
            "sign_flip",
            _within(support, *resampling.sign_flip(x_K, alpha, seed, resamples)),
        )
    else:
        method, (low, high) = "bca", resampling.bca(x_K, alpha, seed, resamples)
    return Interval(n, mean, std, low, high, method)


def _of_families(
    x_K: Floats,
    families_K: Sequence[Hashable],
    effective: float,
    support: tuple[float, float],
    alpha: float,
    seed: int,
    resamples: int,
) -> Interval:
    """Return the mean over scenarios and its interval, where some scenarios share a family."""
    sum_F, size_F = _by_family(x_K, families_K)
    mean, n = float(x_K.mean()), x_K.size
    residual_F = sum_F - mean * size_F
    std = math.sqrt(float((residual_F**2).sum()) * sum_F.size / (sum_F.size - 1) / n)
    method: Method
    if np.ptp(x_K) <= NO_SPREAD:
        method, (low, high) = "exact", _no_variance(mean, math.floor(effective), support, alpha)
        std = 0.0
    elif _few_differ(sum_F / size_F, effective):
        method = "bounded"
        low, high = resampling.bounded_ratio(sum_F, size_F, support, alpha, seed, resamples)
    elif effective < MIN_BCA:
        method = "sign_flip"
        low, high = _within(support, *resampling.sign_flip(sum_F, alpha, seed, resamples, size_F))
    else:
        method = "bca"
        low, high = resampling.bca_ratio(sum_F, size_F, effective, alpha, seed, resamples)
    return Interval(n, mean, std, low, high, method, effective)


def _within(support: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    """Return bounds no wider than the `support`."""
    return max(low, support[0]), min(high, support[1])


def effective_families(families_K: Sequence[Hashable]) -> float:
    """Return how many families of equal size say as much: Kish 1965, "Survey Sampling"; 0 of none."""
    sizes = Counter(families_K).values()
    return sum(sizes) ** 2 / sum(size * size for size in sizes) if sizes else 0.0


def _by_family(x_K: Floats, families_K: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Return sum and size of each family, in the order in which the families come."""
    places: dict[Hashable, int] = {}
    place_K = [places.setdefault(family, len(places)) for family in families_K]
    sum_F: Floats = np.bincount(place_K, weights=x_K).astype(np.float64)
    return sum_F, np.bincount(place_K).astype(np.float64)


def paired_interval(
    before_K: Sequence[float] | Floats,
    after_K: Sequence[float] | Floats,
    families_K: Sequence[Hashable] = (),
    *,
    level: float = 0.95,
) -> Interval:
    """Return the mean of ``after - before`` over paired scenarios, both in [0, 1], and its interval."""
    if len(before_K) != len(after_K):
        raise ValueError(f"pairs must have one length, got {len(before_K)} and {len(after_K)}")
    gains_K = [after - before for before, after in zip(before_K, after_K, strict=True)]
    return mean_interval(gains_K, families_K, support=(-1.0, 1.0), level=level)


def one_sided_p(
    differences_K: npt.ArrayLike,
    families_K: Sequence[Hashable] = (),
    *,
    shift: float = 0.0,
    alternative: Literal["greater", "less"] = "greater",
    seed: int = 0,
    resamples: int = 10_000,
) -> float:
    """Return the one-sided sign-flip p of paired differences: that their mean lies above (below) `shift`.

    Under the null hypothesis the sum of ``difference - shift`` in a family is as likely with the other sign:
    Fisher 1935, "The Design of Experiments", section 21. All sign patterns are used for few families, else a
    random sample of them with the pattern seen added (Phipson and Smyth 2010, "Permutation P-values Should
    Never Be Zero"), so that p is never 0. Under 8 effective families the scenarios are the units. Without any
    value p is 1. Raises ValueError on a matrix and on values not finite.
    """
    x_K = np.asarray(differences_K, dtype=np.float64) - shift
    if x_K.ndim != 1 or not np.isfinite(x_K).all():
        raise ValueError(f"differences must be a vector of finite numbers, got shape {x_K.shape}")
    if not x_K.size:
        return 1.0
    if effective_families(families_K) >= MIN_INTERVAL:
        x_K = _by_family(x_K, families_K)[0]
    if alternative == "less":
        x_K = -x_K
    return resampling.sign_flip_p(x_K, seed, resamples)


def two_sided_p(differences_K: npt.ArrayLike, families_K: Sequence[Hashable] = ()) -> float:
    """Return the two-sided sign-flip p: twice the smaller one-sided p of `one_sided_p`, at most 1."""
    less = one_sided_p(differences_K, families_K, alternative="less")
    return min(1.0, 2 * one_sided_p(differences_K, families_K), 2 * less)


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


def rollouts_bounds(
    before_K: Sequence[tuple[int, float]], after_K: Sequence[tuple[int, float]], alpha: float
) -> tuple[float, float, float]:
    """Return bounds of the mean difference of just these scenarios, and the p that it is below 0.

    Each pair has the number of a scenario's rollouts and the sum of their scores, all in [0, 1]: the rollouts
    alone are random. Each mean has Wilson's limits with continuity correction, one-sided at `alpha`, and both
    are joined as Newcombe 1998 does ("Interval estimation for the difference between independent
    proportions", method 11), which holds for scores between 0 and 1 too, as they vary less than coins do.
    """
    means, weights = [], []
    for rows in (before_K, after_K):
        means.append(math.fsum(total / n for n, total in rows) / len(rows))
        weights.append(len(rows) ** 2 / math.fsum(1 / n for n, _ in rows))
    before, after = zip(means, weights, strict=True)

    def bounds(z: float) -> tuple[float, float]:
        old, new = _wilson(*before, z), _wilson(*after, z)
        difference = after[0] - before[0]
        low = difference - math.hypot(after[0] - new[0], old[1] - before[0])
        return low, difference + math.hypot(new[1] - after[0], before[0] - old[0])

    low_z, high_z = 0.0, 10.0
    while high_z - low_z > 1e-6:
        z = (low_z + high_z) / 2
        low_z, high_z = (z, high_z) if bounds(z)[1] < 0 else (low_z, z)
    p = 0.5 * math.erfc(low_z / math.sqrt(2)) if means[1] < means[0] else 1.0
    return (*bounds(normal_quantile(1 - alpha)), p)


def _wilson(mean: float, n: float, z: float) -> tuple[float, float]:
    """Return the limits of a mean of `n` scores, with continuity correction (Newcombe 1998, method 4)."""

    def lowest(mean: float) -> float:
        inside = z * z - 2 - 1 / n + 4 * mean * (n * (1 - mean) + 1)
        limit = (2 * n * mean + z * z - 1 - z * math.sqrt(max(inside, 0.0))) / (2 * (n + z * z))
        return min(max(limit, 0.0), mean)

    return lowest(mean), 1 - lowest(1 - mean)


def zero_event_bound(n: int, alpha: float) -> float:
    """Return the upper bound of a rate, at confidence 1 - `alpha`, when none of `n` trials had the event.

    The p that solves ``(1 - p)^n = alpha``: the one-sided bound of Clopper and Pearson 1934, "The use of
    confidence or fiducial limits illustrated in the case of the binomial", for zero events.
    """
    return float(-math.expm1(math.log(alpha) / n))


@functools.lru_cache(maxsize=256)
def rare_event_bound(events: int, n: int, alpha: float) -> float:
    """Return the upper bound of a rate, at confidence 1 - `alpha`, when few of `n` trials had the event.

    The p under which so few have probability `alpha` (Clopper and Pearson 1934), to 1e-6; 1 when all had it.
    """
    if events >= n:
        return 1.0
    low, high = events / n, 1.0
    while high - low > 1e-6:
        p = (low + high) / 2
        few = math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(events + 1))
        low, high = (p, high) if few > alpha else (low, p)
    return high


def pass_at_k(n_K: Sequence[int], c_K: Sequence[int], k: int) -> list[float]:
    """Return the unbiased chance that one of `k` attempts passes, given `c_K` passes in `n_K` attempts.

    ``1 - C(n-c, k) / C(n, k)``, Chen et al. 2021, "Evaluating Large Language Models Trained on Code"; NaN
    where n < k. Raises ValueError unless 0 <= c <= n and k >= 1.
    """
    pairs_K = list(zip(n_K, c_K, strict=True))
    if k < 1 or any(not 0 <= c <= n for n, c in pairs_K):
        raise ValueError("pass@k needs k >= 1 and 0 <= passes <= attempts")
    return [
        math.nan if n < k else 1.0 - math.prod(max(n - c - j, 0) / (n - j) for j in range(k))
        for n, c in pairs_K
    ]


def mean_of(values_K: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    if len(values_K) < MIN_INTERVAL:
        return _in_order(values_K) / len(values_K)

    return float(np.mean(values_K))


def _of_few(values_K: Sequence[float], support: tuple[float, float]) -> Interval:
    """Return the mean of fewer than 8 values, summed in their order, which is how numpy sums so few."""
    if any(not support[0] - NO_SPREAD <= value <= support[1] + NO_SPREAD for value in values_K):
        raise ValueError(f"values must lie in [{support[0]:g}, {support[1]:g}]")
    n = len(values_K)
    mean = mean_of(values_K) if n else math.nan
    squares_K = [(value - mean) * (value - mean) for value in values_K]
    std = math.sqrt(_in_order(squares_K) / (n - 1)) if n > 1 else math.nan
    return Interval(n, mean, std, None, None, "none")


def _in_order(values_K: Sequence[float]) -> float:
    return float(functools.reduce(operator.add, values_K, 0.0))  # sum() compensates since Python 3.12


def _few_differ(x_K: Floats, effective: float) -> bool:
    """Return whether most values agree and too few differ for a sign-flip or bootstrap interval."""
    differ = x_K.size - int(resampling.distinct(x_K)[1].max())
    return differ < (MIN_SIGNS if effective < MIN_BCA else MIN_RESAMPLED) and 2 * differ <= x_K.size


def _no_variance(c: float, n: int, support: tuple[float, float], alpha: float) -> tuple[float, float]:
    """Bound the mean when all n values are c: at most a share p differs, by as much as the support allows."""
    p = zero_event_bound(n, alpha)
    return c - p * (c - support[0]), c + p * (support[1] - c)
