"""How often a gate is red though nothing changed: its looks at simulated builds, against a stored sweep.

Axes: ``_K`` scenarios. A scenario's chance is drawn from what its stored rollouts leave open: scores are
means of coins, as many for each rollout as their spread says, with a Beta prior fitted to the scenarios
(Kleinman 1973, "Proportions with Extraneous Variance").
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL, Measured, normal_quantile
from pytest_tfgrpo.numerics.stats import Interval, effective_families, mean_interval, rollouts_bounds

_RESAMPLES = 1000
_MOST_COINS = 100.0
"""Coins that a rollout stands for at most: their mean hardly varies."""
_TINY = 1e-9
_ALIKE = 1000.0
"""Weight of the prior, in coins, where scenarios differ by no more than their rollouts."""


class LookPlan(NamedTuple):
    """A look at a build, and what it is held to."""

    rollouts: int
    """Of each scenario, at this look and those before."""
    level: float
    """One-sided chance that a bound is wrong."""


class Limits(NamedTuple):
    """What a difference is held to."""

    margin: float
    alarm: float
    """1: no drop need be excluded."""
    drift: float = 0.0
    strict: bool = False
    """Whether an open answer is red."""


class StoredSweep(NamedTuple):
    """A stored sweep, with the families of its scenarios."""

    rows: Sequence[Measured]
    families_K: Sequence[Hashable]
    more: float = 0.0
    """Rollouts that will join those of each scenario, as multiples of them."""
    times: int = 1
    """How many scenarios there will be like each; the copies have as many rollouts."""


def red_share(stored: StoredSweep, looks: Sequence[LookPlan], limits: Limits, *, draws: int) -> float:
    """Return the share of builds without a change for which the gate would be red, of so many `draws`.

    Errors are left out. At least one scenario has a rollout.
    """
    rng = np.random.default_rng(0)
    n_K = np.array([row.n for row in stored.rows], dtype=np.float64)
    sum_K = np.array([row.sum for row in stored.rows])
    coins = _coins(stored.rows)
    prior = _prior(n_K, sum_K, coins)
    families_K = [(family, copy) for copy in range(stored.times) for family in stored.families_K]
    red = 0
    for _ in range(draws):
        a, b = prior.drawn(rng)
        p_K = rng.beta(a + coins * sum_K, b + coins * (n_K - sum_K))
        added_K = _scores(rng, np.rint(stored.more * n_K), p_K, coins)
        base = [(n_K * (1 + stored.more), sum_K + added_K, p_K)]
        for _ in range(stored.times - 1):
            like_K = rng.beta(a, b, size=n_K.size)
            base.append((n_K, _scores(rng, n_K, like_K, coins), like_K))
        known_K, total_K, chance_K = (np.concatenate(part) for part in zip(*base, strict=True))
        red += _is_red(rng, (known_K, total_K), chance_K, coins, families_K, looks, limits)
    return red / draws


def _is_red(
    rng: np.random.Generator,
    before: tuple[Floats, Floats],
    p_K: Floats,
    coins: float,
    families_K: Sequence[Hashable],
    looks: Sequence[LookPlan],
    limits: Limits,
) -> bool:
    """Return whether one build fails at its last look; rollouts that a look adds join those before."""
    few = p_K.size < MIN_INTERVAL or effective_families(families_K) < MIN_INTERVAL
    sum_K, made, low, high = np.zeros_like(p_K), 0, -1.0, 1.0
    drifted = rng.normal(0.0, limits.drift) if limits.drift else 0.0
    for look in looks:
        sum_K = sum_K + _scores(rng, np.full_like(p_K, look.rollouts - made), p_K, coins)
        made = look.rollouts
        found = _bounds(before, (np.full_like(p_K, made), sum_K), families_K, look.level, few=few)
        room = limits.drift * normal_quantile(1 - look.level)
        middle = found[1] + drifted
        low = max(low, middle - math.hypot(found[1] - found[0], room))
        high = min(high, middle + math.hypot(found[2] - found[1], room))
        if low > -limits.margin or high < 0:
            break
        if low > -limits.alarm or limits.alarm >= 1:
            return limits.strict
    return low <= -limits.margin


def _bounds(
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    families_K: Sequence[Hashable],
    level: float,
    *,
    few: bool,
) -> tuple[float, float, float]:
    """Return lower bound, mean and upper bound of the difference, by the method that its sample calls for."""
    means_K = after[1] / after[0] - before[1] / before[0]
    mean = float(means_K.mean())
    if few:
        sides = [[(n, total) for n, total in zip(*side, strict=True)] for side in (before, after)]
        low, high, _ = rollouts_bounds(sides[0], sides[1], level)
        return low, mean, high
    found = _interval(means_K, families_K, 2 * level)
    if found.method == "exact":  # its level is that of one bound
        found = _interval(means_K, families_K, level)
    return found.low or 0.0, mean, found.high or 0.0


def _interval(means_K: Floats, families_K: Sequence[Hashable], alpha: float) -> Interval:
    times = max(_RESAMPLES, math.ceil(8 / alpha))
    return mean_interval(means_K, families_K, support=(-1.0, 1.0), level=1 - alpha, resamples=times)


def _scores(rng: np.random.Generator, rollouts_K: Floats, p_K: Floats, coins: float) -> Floats:
    """Return the sums of the scores of so many new rollouts."""
    thrown_K = np.rint(rollouts_K * coins).astype(np.int64)
    heads_K = rng.binomial(thrown_K, p_K)
    return np.asarray(rollouts_K * heads_K / np.maximum(thrown_K, 1), dtype=np.float64)


def _coins(rows: Sequence[Measured]) -> float:
    """Return how many coins a rollout's score is the mean of: 1 where scores are 0 or 1."""
    several = [row for row in rows if row.n > 1]
    coin = math.fsum(row.sum - row.sum**2 / row.n for row in several)
    spread = math.fsum(row.sum_sq - row.sum**2 / row.n for row in several)
    if spread <= _TINY:
        return _MOST_COINS if coin > _TINY else 1.0
    return min(max(coin / spread, 1.0), _MOST_COINS)


class _Prior(NamedTuple):
    """The Beta distribution of the scenarios' chances."""

    mean: float
    mean_sd: float
    """How far off `mean` may be."""
    weight: float
    """In coins."""

    def drawn(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return its parameters, with a mean as it may be."""
        mean = min(max(rng.normal(self.mean, self.mean_sd), 0.001), 0.999)
        return mean * self.weight, (1 - mean) * self.weight


def _prior(n_K: Floats, sum_K: Floats, coins: float) -> _Prior:
    """Return the distribution of the scenarios' chances by its moments."""
    total = float(n_K.sum()) * coins
    mean = (float((sum_K / n_K).mean()) * total + 0.5) / (total + 1.0)
    each = float(n_K.mean()) * coins
    found = float((sum_K / n_K).var(ddof=1)) if n_K.size > 1 else 0.0
    if each <= 1:  # one coin each shows nothing of how scenarios differ
        weight = 2.0
    else:
        between = (found - mean * (1 - mean) / each) / (1 - 1 / each)
        weight = mean * (1 - mean) / between - 1 if between > 0 else _ALIKE
    return _Prior(mean, math.sqrt(found / n_K.size), min(max(weight, 0.02), _ALIKE))
