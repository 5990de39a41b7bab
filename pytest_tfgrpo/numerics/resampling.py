"""Resampling behind the intervals and tests of `stats`; axis ``_K``: scenarios, ``_B``: resamples."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.planning import NO_SPREAD

if TYPE_CHECKING:
    import numpy.typing as npt

_DECIMALS = 12
_ENUMERATE = 13
"""Up to this many values all 2^n sign patterns are used; above, a random sample of them."""
_DRAWS = 20_000_000
"""Most values drawn for one interval, so that very large suites stay fast."""
_GHOST = 0.5
"""Weight of the value that was not seen, in scenarios."""
_NORMAL = NormalDist()


def distinct(x_K: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the values that occur, up to rounding, and how often."""
    values, counts = np.unique(np.round(x_K, _DECIMALS), return_counts=True)
    return values, counts.astype(np.int64)


def sign_flip_p(x_K: Floats, seed: int, resamples: int) -> float:
    """Return the share of sign patterns under which the sum of `x_K` is at least what it is."""
    seen, slack = x_K.sum(), NO_SPREAD * np.abs(x_K).sum()
    if x_K.size <= _ENUMERATE:
        signs_BK = 1.0 - 2.0 * _patterns(x_K.size)
        return float(np.mean(signs_BK @ x_K >= seen - slack))
    reached = np.count_nonzero(_flipped_sums(x_K, seed, resamples) >= seen - slack)
    return float((reached + 1) / (resamples + 1))


def _patterns(n: int) -> npt.NDArray[np.int64]:
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def _flipped_sums(x_K: Floats, seed: int, resamples: int) -> Floats:
    """Return sums of `x_K` under random signs, eight values at a time: one random byte picks their signs."""
    rng = np.random.default_rng(seed)
    signs_8 = 1.0 - 2.0 * _patterns(8)
    sums_B = np.zeros(resamples)
    for start in range(0, x_K.size, 8):
        part = x_K[start : start + 8]
        sums_B += (signs_8[:, : part.size] @ part)[rng.integers(0, 256, size=resamples, dtype=np.uint8)]
    return sums_B


def sign_flip(
    x_K: Floats, alpha: float, seed: int, resamples: int, size_K: Floats | None = None
) -> tuple[float, float]:
    """Invert the two-sided sign-flip test of the mean.

    Flipping the signs of ``x - theta`` in a subset raises their sum if and only if the subset's mean is below
    theta, so the interval runs between quantiles of subset means: Hartigan 1969, "Using Subsample Values as
    Typical Values". With `size_K` the values are sums over so many scenarios, and the means are ratios.
    """
    n = x_K.size
    chosen_BK = (
        _patterns(n)
        if n <= _ENUMERATE
        else np.random.default_rng(seed).integers(0, 2, size=(resamples - 1, n))
    )
    chosen_BK = chosen_BK[chosen_BK.any(axis=1)]
    total_B = chosen_BK.sum(axis=1) if size_K is None else chosen_BK @ size_K
    means_B = np.sort(chosen_BK @ x_K / total_B)
    # The subset that flips nothing counts as extreme on both sides.
    k = math.floor(alpha / 2 * (means_B.size + 1)) - 1
    if k < 0:  # so few patterns reject nothing at this level
        return -math.inf, math.inf
    return float(means_B[k]), float(means_B[-1 - k])


def bounded(
    x_K: Floats, support: tuple[float, float], alpha: float, seed: int, resamples: int
) -> tuple[float, float]:
    """Return the interval of a mean whose sample holds few values that differ.

    A resample says nothing of what was not seen, so each bound counts half an observation at its end of
    the support: quantiles of means under weights from a Dirichlet distribution with that value added. With a
    whole observation this is the bound of Gaffke 2005 (Learned-Miller and Thomas 2020, "A New Confidence
    Interval for the Mean of a Bounded Random Variable"), with 0/1 values that of Clopper and Pearson; with
    half of one, values of 0 and 1 give an interval close to that of Jeffreys.
    """
    rng = np.random.default_rng(seed)
    values_V, counts_V = distinct(x_K)
    weights_BV = rng.standard_gamma(counts_V.astype(np.float64), size=(resamples, values_V.size))
    ghost_B = rng.standard_gamma(_GHOST, size=resamples)
    sums_B, total_B = weights_BV @ values_V, weights_BV.sum(axis=1) + ghost_B
    low = np.quantile((sums_B + support[0] * ghost_B) / total_B, alpha / 2)
    high = np.quantile((sums_B + support[1] * ghost_B) / total_B, 1 - alpha / 2)
    mean = x_K.mean()
    return float(min(low, mean)), float(max(high, mean))


def bounded_ratio(
    sum_F: Floats, size_F: Floats, support: tuple[float, float], alpha: float, seed: int, resamples: int
) -> tuple[float, float]:
    """Return the interval of `bounded` for families; the value not seen has half the mean size of one."""
    rng = np.random.default_rng(seed)
    weights_BF = rng.standard_gamma(1.0, size=(resamples, sum_F.size))
    ghost_B = rng.standard_gamma(_GHOST, size=resamples) * size_F.mean()
    sums_B, total_B = weights_BF @ sum_F, weights_BF @ size_F + ghost_B
    low = np.quantile((sums_B + support[0] * ghost_B) / total_B, alpha / 2)
    high = np.quantile((sums_B + support[1] * ghost_B) / total_B, 1 - alpha / 2)
    mean = sum_F.sum() / size_F.sum()
    return float(min(low, mean)), float(max(high, mean))


def bca(x_K: Floats, alpha: float, seed: int, resamples: int) -> tuple[float, float]:
    """Return the BCa bootstrap interval of the mean: Efron 1987, "Better Bootstrap Confidence Intervals".

    Its tails are expanded for the size of the sample: see `expanded_tail`.
    """
    means_B = _bootstrap_means(x_K, seed, min(resamples, max(1000, _DRAWS // x_K.size)))
    # The jackknife values of a mean are linear in the data, which leaves the skewness of the sample.
    return _bca_bounds(means_B, x_K.mean(), x_K - x_K.mean(), x_K.size, alpha)


def bca_ratio(
    sum_F: Floats, size_F: Floats, effective: float, alpha: float, seed: int, resamples: int
) -> tuple[float, float]:
    """Return the BCa interval of ``sum / size`` over families, which are drawn whole.

    `effective` is how many families of equal size say as much (Kish 1965, "Survey Sampling").
    """
    rng = np.random.default_rng(seed)
    times = min(resamples, max(1000, _DRAWS // sum_F.size))
    drawn_BF = rng.multinomial(sum_F.size, np.full(sum_F.size, 1 / sum_F.size), size=times)
    mean = sum_F.sum() / size_F.sum()
    without_F = (sum_F.sum() - sum_F) / (size_F.sum() - size_F)
    ratios_B = (drawn_BF @ sum_F) / (drawn_BF @ size_F)
    return _bca_bounds(ratios_B, mean, without_F.mean() - without_F, effective, alpha)


def _bca_bounds(
    means_B: Floats, mean: float, influence_K: Floats, n: float, alpha: float
) -> tuple[float, float]:
    """Return the bounds from bootstrap means; `influence_K` is by how much each value moves the mean."""
    means_B = np.sort(means_B)
    ranks = np.searchsorted(means_B, [mean - NO_SPREAD, mean + NO_SPREAD], side="right")
    share = float(np.clip(ranks.mean() / means_B.size, 1 / (means_B.size + 1), 1 - 1 / (means_B.size + 1)))
    bias = _NORMAL.inv_cdf(share)
    acceleration = float((influence_K**3).sum() / (6.0 * (influence_K**2).sum() ** 1.5))

    def bound(tail: float) -> float:
        z = bias + _NORMAL.inv_cdf(tail)
        return float(np.quantile(means_B, _NORMAL.cdf(bias + z / (1.0 - acceleration * z))))

    tail = expanded_tail(alpha / 2, n)
    return bound(tail), bound(1.0 - tail)


def expanded_tail(tail: float, n: float) -> float:
    """Return the tail of a bootstrap distribution that stands for `tail` at `n` values.

    A resample's variance is too small by ``(n - 1) / n``, and the normal quantile too small by what Student's
    makes up for: Hesterberg 2015, "What Teachers Should Know About the Bootstrap", section 5.
    """
    return _NORMAL.cdf(-math.sqrt(n / (n - 1)) * student_quantile(1.0 - tail, n - 1))


def student_quantile(share: float, nu: float) -> float:
    """Return the quantile of Student's t with `nu` > 0 degrees of freedom, for `share` from 0.5 on, to 1e-9.

    Newton's steps on `student_tail`, from the bound of Wallace 1959, "Bounds on normal approximations to
    Student's".
    """
    z = _NORMAL.inv_cdf(share) * (8.0 * nu + 3.0) / (8.0 * nu + 1.0)
    t, tail = math.sqrt(nu * math.expm1(min(z * z / nu, 700.0))), 2.0 * (1.0 - share)
    log_scale = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
    for _ in range(100):
        density = math.exp(log_scale - (nu + 1) / 2 * math.log1p(t * t / nu))
        # the tail falls about as a power of t where nu is small: steps on its logarithm do not overshoot
        found = student_tail(t, nu)
        step = found / (2.0 * density) * math.log(found / tail) if found > 0 and density > 0 else 0.0
        t = max(t + step, 0.0)
        if abs(step) <= 1e-10 * max(t, 1.0):
            break
    return t


def student_tail(t: float, nu: float) -> float:
    """Return the probability that Student's t lies outside [-t, t]: Abramowitz and Stegun 26.7.1 and 26.5.8.

    The incomplete beta function ``I_x(nu/2, 1/2)`` at ``x = nu / (nu + t^2)``, by its continued fraction.
    """
    x = nu / (nu + t * t)
    if x < (nu + 2.0) / (nu + 5.0):
        return _beta(x, nu / 2, 0.5)
    return 1.0 - _beta(1.0 - x, 0.5, nu / 2)


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function for x < (a + 1) / (a + b + 2), by Lentz's method."""
    if x <= 0.0:
        return 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return math.exp(log_front) * fraction / a


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
