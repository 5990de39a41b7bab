"""Ranges: figures between a low and a high end, from recorded samples or assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum, sqrt

from pytest_tfgrpo.core.python.dataclass import dataclass

FEW = 5
"""Of fewer records the spread is taken to be at least half their mean."""
DRIFT = 0.1
"""Share by which a mean may move from one run to the next, as prompts carry other lessons."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure between two ends, 0 <= low <= high."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)


NOTHING = Range(0.0, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Calls, tokens and cost of a part of a run; None where it is unknown."""

    calls: Range = NOTHING
    tokens: Range | None = NOTHING
    usd: Range | None = NOTHING

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            calls=self.calls + other.calls,
            tokens=_sum(self.tokens, other.tokens),
            usd=_sum(self.usd, other.usd),
        )


def _sum(one: Range | None, other: Range | None) -> Range | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class UnitUse:
    """What one recorded rollout, or another unit of work, used."""

    calls: float
    tokens: float
    usd: float | None


def predict(records: Sequence[UnitUse], count: int) -> Figures:
    """Return what `count` more units like those recorded will use; `records` must not be empty."""
    costs = [record.usd for record in records if record.usd is not None]
    return Figures(
        calls=_predict([record.calls for record in records], count),
        tokens=_predict([record.tokens for record in records], count),
        usd=_predict(costs, count) if len(costs) == len(records) else None,
    )


def _predict(values: Sequence[float], count: int) -> Range:
    """Return the interval of a sum of `count` values: two standard errors of the prediction, and drift."""
    n = len(values)
    mean = fsum(values) / n
    variance = fsum((value - mean) ** 2 for value in values) / max(1, n - 1)
    if n < FEW and any(values):
        variance = max(variance, (mean / 2) ** 2)
    margin = 2 * sqrt(variance * (count + count**2 / n)) + DRIFT * mean * count * (variance > 0)
    return Range(max(0.0, mean * count - margin), mean * count + margin)


def up_to(figures: Figures) -> Figures:
    """Return anything from nothing to the high ends of `figures`."""
    return _each(figures, lambda found: Range(0.0, found.high))


def high_ends(figures: Figures) -> Figures:
    """Return `figures` as the most of each."""
    return _each(figures, lambda found: Range(found.high, found.high))


def _each(figures: Figures, change: Callable[[Range], Range]) -> Figures:
    tokens, usd = (None if found is None else change(found) for found in (figures.tokens, figures.usd))
    return Figures(calls=change(figures.calls), tokens=tokens, usd=usd)


def total(parts: Iterable[Figures]) -> Figures:
    """Return the sum of some figures."""
    found = Figures()
    for part in parts:
        found += part
    return found
