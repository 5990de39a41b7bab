"""How far arms are shown to differ, and the least share that each keeps until it is shown worse.

Without this a selector drifts by chance to one of several equal arms, and explores no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass

MEMORY = 50
"""Runs of an arm after which its mean forgets: later ones weigh 1 / MEMORY."""
PRIOR = 4.0
"""Runs that the spread over all arms counts for in the spread within them."""
_DIGITS = 9
ROUNDING = 1e-8
"""Variance that may be one of rounding alone."""


class ArmReturn(NamedTuple):
    """What one choice of an arm returned."""

    category: str
    arm: str
    """Its stamp."""
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmReturns:
    """Mean and mean square of what an arm returned, and how many returns they stand for."""

    n: int = 0
    mean: float = 0.0
    square: float = 0.0

    def and_also(self, value: float) -> ArmReturns:
        """Return them with one return more."""
        n = min(self.n + 1, MEMORY)
        return ArmReturns(
            n=n,
            mean=round(self.mean + (value - self.mean) / n, _DIGITS),
            square=round(self.square + (value * value - self.square) / n, _DIGITS),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmEvidence:
    """What the arms of one point returned."""

    returns: Mapping[str, Mapping[str, ArmReturns]] = field(default_factory=dict)
    """By category, then stamp of the arm."""

    def with_returns(self, found: Iterable[ArmReturn]) -> ArmEvidence:
        """Return the evidence with these returns."""
        returns = {category: dict(arms) for category, arms in self.returns.items()}
        for category, arm, value in found:
            arms = returns.setdefault(category, {})
            arms[arm] = arms.get(arm, ArmReturns()).and_also(value)
        return ArmEvidence(returns=returns)

    def of_arms(self, stamps: Iterable[str]) -> ArmEvidence:
        """Return the evidence on some arms alone."""
        kept = {*stamps}
        found = {
            category: {arm: one for arm, one in arms.items() if arm in kept}
            for category, arms in self.returns.items()
        }
        return ArmEvidence(returns={category: arms for category, arms in found.items() if arms})

    def least_shares(self, categories: Iterable[str | None], stamps: Iterable[str]) -> list[dict[str, float]]:
        """Return for each category the least share of each arm, by stamp; they sum to 1 at most.

        It is ``exp(-z^2 / 2) / arms``, with z the difference from the best arm in its standard errors, in
        this category or over all of them, whichever is larger; None: over all. The chance that equal arms
        come to differ by so much is at most ``exp(-z^2 / 2) / 2`` (Chernoff's bound).
        """
        arms = sorted({*stamps})
        tables = {
            category: _table_of({arm: one for arm, one in known.items() if arm in arms})
            for category, known in self.returns.items()
        }
        everywhere = _behind(list(tables.values()), arms)
        found = []
        for category in categories:
            here = _behind([tables[category]], arms) if category in tables else everywhere
            z = {arm: max(here[arm], everywhere[arm]) for arm in arms}
            found.append({arm: math.exp(-(z[arm] ** 2) / 2) / len(arms) for arm in arms})
        return found


class _Table(NamedTuple):
    """What is known of the arms of a category."""

    arms: Mapping[str, ArmReturns]
    mean: float
    """Over all of them."""
    variance: float
    """Within them, towards that over all for few runs."""


def _table_of(arms: Mapping[str, ArmReturns]) -> _Table:
    n = sum(one.n for one in arms.values())
    if not n:
        return _Table({}, 0.0, 0.0)
    mean = sum(one.n * one.mean for one in arms.values()) / n
    overall = max(sum(one.n * one.square for one in arms.values()) / n - mean * mean, 0.0)
    within = sum(one.n * max(one.square - one.mean**2, 0.0) for one in arms.values())
    return _Table(arms, mean, (within + PRIOR * overall) / (n + PRIOR))


def _behind(tables: Sequence[_Table], arms: Sequence[str]) -> dict[str, float]:
    """Return by how many standard errors each arm is worse than the best one, over categories."""
    gains, counts = dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0)
    for table in tables:
        for arm, one in table.arms.items():
            gains[arm] += one.n * (one.mean - table.mean)
            counts[arm] += one.n
    known = [arm for arm in arms if counts[arm]]
    if not known:
        return dict.fromkeys(arms, 0.0)
    best = max(known, key=lambda arm: gains[arm] / counts[arm])
    return {arm: 0.0 if arm == best else _z(tables, best, arm) for arm in arms}


def _z(tables: Sequence[_Table], best: str, arm: str) -> float:
    """Return the standardised difference of two arms over categories, each weighted by its precision."""
    total = weights = 0.0
    for table in tables:
        one, other = table.arms.get(best), table.arms.get(arm)
        if one is not None and other is not None and table.variance > ROUNDING:
            precision = 1 / (table.variance * (1 / one.n + 1 / other.n))
            total += precision * (one.mean - other.mean)
            weights += precision
    return max(total / math.sqrt(weights), 0.0) if weights else 0.0
