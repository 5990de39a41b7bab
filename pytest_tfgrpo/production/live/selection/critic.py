"""What a run is worth before its arm is known: the mean return of its category and place, shrunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass

PRIOR = 4.0
"""Returns that the mean of a place over all categories counts for in the mean of one category."""
MEMORY = 50
"""Returns after which a mean forgets: later ones weigh 1 / MEMORY, so that the critic follows a drift."""


class Visit(NamedTuple):
    """A step that a critic judges."""

    category: str
    place: int
    """Which choice of its run, from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanReturn:
    """A mean, and how many returns it stands for."""

    n: int
    mean: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Critic:
    """Mean returns by category and place."""

    means: Mapping[str, Mapping[str, MeanReturn]] = field(default_factory=dict)
    """By category, then place in decimal digits."""

    def value(self, visit: Visit) -> float:
        """Return the expected return of a step, in [-1, 1]; 0 where nothing is known."""
        here = self.means.get(visit.category, {}).get(str(visit.place))
        mean = self._of_place(visit.place)
        return mean if here is None else (here.n * here.mean + PRIOR * mean) / (here.n + PRIOR)

    def updated(self, returns: Iterable[tuple[Visit, float]]) -> Critic:
        """Return a critic that has seen these returns as well."""
        means = {category: dict(places) for category, places in self.means.items()}
        for (category, place), value in returns:
            places = means.setdefault(category, {})
            old = places.get(str(place), MeanReturn(n=0, mean=0.0))
            n = min(old.n + 1, MEMORY)
            places[str(place)] = MeanReturn(n=n, mean=old.mean + (value - old.mean) / n)
        return Critic(means=means)

    def _of_place(self, place: int) -> float:
        known = [found for places in self.means.values() if (found := places.get(str(place)))]
        total = sum(one.n for one in known)
        return sum(one.n * one.mean for one in known) / total if total else 0.0
