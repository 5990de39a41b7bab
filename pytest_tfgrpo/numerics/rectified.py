"""A gain by a judge, corrected by human labels of a random part; axis ``_K``: scenarios, ``_N``: labelled.

The difference estimator of survey sampling, as prediction-powered inference has it (Angelopoulos, Bates,
Fannjiang, Jordan and Zrnic 2023, "Prediction-powered inference"): the judge's mean over all scenarios, plus
the mean of human less judge over those labelled. Whatever the judge is, the sum is unbiased; a poor judge
only makes the interval wide.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.numerics.stats import Interval, effective_families, mean_interval


class Rectified(NamedTuple):
    """A gain with its correction."""

    gain: float
    """The judge's gain plus the correction, within [-1, 1]."""
    low: float | None
    high: float | None
    """Its interval; None where the gain or the correction has none."""
    correction: Interval
    """Of the labelled scenarios: mean of human less judge after, less the same before, and its interval."""
    correlation: float
    """Of the judge's gain and the correction, as estimates; 0 where it is unknown."""

    @property
    def ci95(self) -> list[float] | None:
        """[low, high]; None where too little is known."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def rectify(
    gains_K: Sequence[float],
    families_K: Sequence[Hashable],
    places_N: Sequence[int],
    corrections_N: Sequence[float],
    share: float = 1.0,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Rectified:
    """Return the mean of `gains_K`, corrected by `corrections_N` of the scenarios at `places_N`.

    Those must be a random part, each scenario as likely as another, of the share of scenarios that a judge
    scored; the others need no correction. The two intervals are joined by their distances from the estimates
    with the correlation of these (Zou and Donner 2008, "Construction of confidence limits about effect
    measures: a general approach"), which keeps what `mean_interval` knows of rare changes and few families.
    Where people saw hardly any change, the interval is at least as wide as that of their labels alone. Raises
    ValueError on a place twice, on no or unequal numbers of corrections, on a share outside (0, 1] and on
    corrections outside [-2, 2].
    """
    _check(gains_K, families_K, places_N, corrections_N, share)
    judged = mean_interval(gains_K, families_K, support=(-1.0, 1.0), level=level, resamples=resamples)
    some_N = [families_K[place] for place in places_N]
    support = min(-1.0 - judged.mean, *corrections_N), max(1.0 - judged.mean, *corrections_N)
    correction = mean_interval(corrections_N, some_N, support=support, level=level, resamples=resamples)
    gain, rho = (
        judged.mean + share * correction.mean,
        _correlation(gains_K, families_K, places_N, corrections_N),
    )
    kept = min(1.0, max(-1.0, gain))
    if judged.low is None or judged.high is None or correction.low is None or correction.high is None:
        return Rectified(kept, None, None, correction, rho)
    below = _joined(judged.mean - judged.low, share * (correction.mean - correction.low), rho)
    above = _joined(judged.high - judged.mean, share * (correction.high - correction.mean), rho)
    seen_N = [gains_K[place] + value for place, value in zip(places_N, corrections_N, strict=True)]
    seen = mean_interval(
        seen_N, some_N, support=(min(-1.0, *seen_N), max(1.0, *seen_N)), level=level, resamples=resamples
    )
    if seen.method in ("exact", "bounded") and seen.low is not None and seen.high is not None:
        below = max(below, share * (seen.mean - seen.low))
        above = max(above, share * (seen.high - seen.mean))
    return Rectified(kept, max(-1.0, gain - below), min(1.0, gain + above), correction, rho)


def _joined(one: float, other: float, rho: float) -> float:
    return math.sqrt(max(0.0, one * one + other * other + 2 * rho * one * other))


def _check(
    gains_K: Sequence[float],
    families_K: Sequence[Hashable],
    places_N: Sequence[int],
    corrections_N: Sequence[float],
    share: float,
) -> None:
    if len(families_K) != len(gains_K) or len(places_N) != len(corrections_N) or not places_N:
        raise ValueError(
            f"{len(gains_K)} gains need as many families, got {len(families_K)}; "
            f"{len(corrections_N)} corrections need as many places, got {len(places_N)}, and one at least"
        )
    if len(set(places_N)) != len(places_N) or not all(0 <= place < len(gains_K) for place in places_N):
        raise ValueError("a correction is of one scenario, and a scenario has one correction")
    if not 0 < share <= 1 or not all(abs(value) <= 2 for value in corrections_N):
        raise ValueError(f"the share must lie in (0, 1], got {share!r}, and corrections in [-2, 2]")


def _correlation(
    gains_K: Sequence[float],
    families_K: Sequence[Hashable],
    places_N: Sequence[int],
    corrections_N: Sequence[float],
) -> float:
    """Return the correlation of the two means over families: sums of what each scenario adds to them."""
    gain, correction = math.fsum(gains_K) / len(gains_K), math.fsum(corrections_N) / len(corrections_N)
    if effective_families(families_K) < MIN_INTERVAL:
        families_K = range(len(gains_K))
    sums: dict[Hashable, list[float]] = {}
    for value, family in zip(gains_K, families_K, strict=True):
        sums.setdefault(family, [0.0, 0.0])[0] += (value - gain) / len(gains_K)
    for value, place in zip(corrections_N, places_N, strict=True):
        sums[families_K[place]][1] += (value - correction) / len(corrections_N)
    one, other = (math.fsum(pair[side] ** 2 for pair in sums.values()) for side in (0, 1))
    if not one * other > 0:
        return 0.0
    rho = math.fsum(a * b for a, b in sums.values()) / math.sqrt(one * other)
    return min(1.0, max(-1.0, rho))


def true_share(share: float, sensitivity: float, specificity: float) -> float:
    """Return which share is good if a judge calls `share` good, within [0, 1].

    ``(q + Sp - 1) / (Se + Sp - 1)``: Rogan and Gladen 1978, "Estimating prevalence from the results of a
    screening test". Raises ValueError on shares outside [0, 1] and on a judge no better than chance.
    """
    if not all(0 <= value <= 1 for value in (share, sensitivity, specificity)):
        raise ValueError(f"shares must lie in [0, 1], got {share!r}, {sensitivity!r} and {specificity!r}")
    if sensitivity + specificity <= 1:
        raise ValueError(
            f"sensitivity {sensitivity:g} and specificity {specificity:g} are no better than chance"
        )
    return min(1.0, max(0.0, (share + specificity - 1) / (sensitivity + specificity - 1)))
