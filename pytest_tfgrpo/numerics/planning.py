"""How much evidence a comparison needs: what a planned sweep can detect, and what decides an open one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

MIN_INTERVAL = 8
"""Fewer scenarios have no interval."""
NO_SPREAD = 1e-12
"""Differences of equal shares differ by rounding; that is no variance."""
_MORE = 4
"""How many times the rollouts the second option has."""
_MOST_ROLLOUTS = 100
"""More rollouts of one scenario are no advice."""
_STEPS, _UNKNOWN = 30, 1000.0
"""Of the search for a number of scenarios, and where it starts."""
_POWER = 0.8
"""Share of runs that advice is to decide: 4 of 5."""
COIN = 0.25
"""Variance of a score in [0, 1] that is as spread as can be: a fair coin."""


class Measured(Protocol):
    """The gt_scores of one scenario in one sweep."""

    @property
    def n(self) -> int: ...
    @property
    def sum(self) -> float: ...
    @property
    def sum_sq(self) -> float: ...


class Difference(Protocol):
    """A paired difference: scenarios, mean, standard error times the root of their number, and families."""

    @property
    def n(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def families(self) -> float:
        """Effective ones; 0 where each scenario is its own."""

    @property
    def method(self) -> str:
        """Of the interval."""


class Spread(NamedTuple):
    """Where the spread of a paired difference comes from, as variances."""

    between: float
    """Of the scenarios' true differences: only more scenarios average it out."""
    within: float
    """Of one rollout before and one after: divided by the rollouts per scenario."""

    def std(self, rollouts: float) -> float:
        """Return the standard deviation of a scenario's difference with so many rollouts in each sweep."""
        return math.sqrt(self.between + self.within / rollouts)


class Settling(NamedTuple):
    """What would decide an open comparison if means and spreads stay the same."""

    options: tuple[tuple[int, int], ...]
    """(scenarios, rollouts of each in each sweep), more scenarios than there are; empty: none do."""
    same_scenarios: int | None
    """Rollouts of the scenarios there are that settle it; None when no reasonable number does."""


def minimum_detectable_effect(std: float, n: int, *, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest true difference that `n` scenarios show with this power (normal approximation).

    Miller 2024, "Adding Error Bars to Evals", section 5.
    """
    return (_z(level) + normal_quantile(power)) * std / math.sqrt(n)


def planned_effect(scenarios: int, rollouts: int) -> float | None:
    """Return the effect that a planned sweep shows whatever the scores' spread: each rollout a fair coin.

    Effects that differ between scenarios need more. None under 8 scenarios, which have no interval.
    """
    if scenarios < MIN_INTERVAL:
        return None
    return minimum_detectable_effect(Spread(0.0, 2 * COIN).std(rollouts), scenarios)


def uneven_effect(
    within: float, headroom: float, scenarios: int, rollouts: int, families: float
) -> float | None:
    """Return the effect that a planned sweep shows with 80 % power if families gain all or nothing.

    A share of the families gains the `headroom`, the others nothing: gains of mean d then vary between
    families by ``d (headroom - d)``, which is put into `minimum_detectable_effect` and solved for d. `within`
    is the variance of a rollout within its scenario, `families` are effective ones. None under 8 of them.
    """
    if families < MIN_INTERVAL:
        return None
    alike = minimum_detectable_effect(Spread(0.0, 2 * within).std(rollouts), scenarios)
    if alike >= headroom:  # where all gain that there is, none differ
        return alike
    share, noise = (_z(0.95) + normal_quantile(0.8)) ** 2 / families, alike**2
    return (share * headroom + math.sqrt((share * headroom) ** 2 + 4 * (1 + share) * noise)) / (
        2 * (1 + share)
    )


def spread(
    difference: Difference, pairs: Sequence[tuple[Measured, Measured]], *, alike: int = 0
) -> Spread | None:
    """Split the variance of a paired difference into parts between and within scenarios.

    `pairs` are the tallies before and after of the scenarios compared; `alike` more have the same answers on
    both sides, so that rollouts add nothing to their difference. The variance of a difference of two
    means is that of the true differences plus that of each mean (Miller 2024, section 3); the second is
    pooled from the sums of squares, the first is what is left. Sweeps that share seeds vary less than the
    rollouts suggest; then all of it counts as within. None when no scenario has two rollouts in each sweep.
    """
    if difference.n < 2 or math.isnan(difference.std) or not pairs:
        return None
    noises = [pooled_noise(side) for side in zip(*pairs, strict=True)]
    if None in noises:
        return None
    variances = [noise for noise in noises if noise is not None]
    number = len(pairs) + alike
    shares = [sum(1 / row.n for row in side) / number for side in zip(*pairs, strict=True)]
    expected = sum(variance * share for variance, share in zip(variances, shares, strict=True))
    found, within = difference.std**2, sum(variances) * len(pairs) / number
    if expected > found:
        return Spread(0.0, within * found / expected)
    return Spread(found - expected, within)


def pooled_noise(rows: Sequence[Measured]) -> float | None:
    """Return the pooled variance of rollouts within scenarios; None when each has one."""
    freedom = sum(row.n - 1 for row in rows)
    if not freedom:
        return None
    return max(sum(row.sum_sq - row.sum**2 / row.n for row in rows) / freedom, 0.0)


def settling_n(difference: Difference, margin: float, *, level: float = 0.95) -> int | None:
    """Return how many scenarios would decide a comparison in 4 of 5 runs, at its mean and spread.

    Settled means: the lower bound is above -`margin`, or the upper bound is below 0 (decision 21a), by the
    method of the interval. They are in families as large as those there are; with fewer than 8 effective
    ones, in these families. None when no number does (a mean on the edge, or nothing measured).
    """
    d, above, below = difference.mean, difference.mean + margin, -difference.mean
    if math.isnan(difference.std) or max(above, below) <= NO_SPREAD:
        return None
    if difference.std <= NO_SPREAD:  # they all differ alike: more of them do so in every run
        rates = [a / b for a, b in ((above, d + 1.0), (below, 1.0 - d)) if a > NO_SPREAD]
        units = [math.log((1.0 - level) / 2) / math.log1p(-min(rate, 1.0 - NO_SPREAD)) for rate in rates]
        needed = min(_each(difference) * n for n in units)
    else:
        needed = _needed(difference, difference.std, max(above, below), level)
    return max(math.floor(needed) + 1, difference.n + 1, math.ceil(MIN_INTERVAL * _each(difference)))


def _needed(difference: Difference, std: float, room: float, level: float) -> float:
    """Return the scenarios of this spread whose bound keeps within `room` of the mean, in 4 of 5 runs.

    Bounds are Student's, as those of the permutation test and of the expanded bootstrap are (`resampling`).
    Where few values differ half an observation at the end of the support comes on top of it.
    """
    each = _each(difference)
    unseen = each * (1 + abs(difference.mean)) * _ghost(level) if difference.method == "bounded" else 0.0
    found = _UNKNOWN
    for _ in range(_STEPS):
        spread_2 = (
            _quantiles(found / each, level) * std
        ) ** 2  # at n: spread_2 / n + (unseen / n)^2 = room^2
        found = (spread_2 + math.sqrt(spread_2**2 + 4 * (room * unseen) ** 2)) / (2 * room**2)
    return found


def _ghost(level: float) -> float:
    """Return the quantile of half an observation's weight: a Gamma distribution of shape 1/2."""
    return _z(0.5 + level / 2) ** 2 / 2


def _quantiles(units: float, level: float) -> float:
    """Return by how many standard errors a mean of so many units must be inside, to be shown in 4 of 5 runs.

    Student's quantile by the expansion of Fisher and Cornish (Abramowitz and Stegun 26.7.5).
    """
    z, nu = _z(level), max(units, MIN_INTERVAL) - 1
    student = z + (z**3 + z) / (4 * nu) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * nu**2)
    return student * math.sqrt((nu + 1) / nu) + normal_quantile(_POWER)


def _each(difference: Difference) -> float:
    """Return the scenarios of an effective family; 1 where these are too few to be the units."""
    return difference.n / difference.families if difference.families >= MIN_INTERVAL else 1.0


def settling(
    difference: Difference, parts: Spread, rollouts: int, margin: float, *, level: float = 0.95
) -> Settling:
    """Return numbers of scenarios and rollouts that would decide a comparison, as `settling_n` means it."""
    room = max(difference.mean + margin, -difference.mean)
    if room <= NO_SPREAD or difference.std <= NO_SPREAD:
        return Settling((), None)
    least = math.ceil(MIN_INTERVAL * _each(difference))

    def scenarios(rollouts: int) -> int:
        return max(math.floor(_needed(difference, parts.std(rollouts), room, level)) + 1, least)

    first = max(scenarios(rollouts), difference.n + 1)
    options = [(first, rollouts)]
    more = rollouts * _MORE
    if more <= _MOST_ROLLOUTS and difference.n < scenarios(more) <= 0.9 * first:
        options.append((scenarios(more), more))
    half = room / _quantiles(difference.n / _each(difference), level)
    left = difference.n * half**2 - parts.between
    alone = math.floor(parts.within / left) + 1 if left > NO_SPREAD else None
    return Settling(tuple(options), alone if alone and alone <= _MOST_ROLLOUTS else None)


def _z(level: float) -> float:
    return normal_quantile(0.5 + level / 2)


@cache
def normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)
