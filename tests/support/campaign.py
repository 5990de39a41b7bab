"""A fault campaign: many cases, of which CI runs a small sample that a printed seed repeats."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Campaign:
    """Which cases of a campaign run: all of them, or a sample by `seed`."""

    seed: int
    full: bool

    def sample(self, cases: Iterable[T], size: int) -> list[T]:
        """Return all cases of a full campaign, else `size` of them, drawn by the seed."""
        every = list(cases)
        return every if self.full or len(every) <= size else self.random(size).sample(every, size)

    def count(self, small: int, full: int) -> int:
        """Return how many random cases to make."""
        return full if self.full else small

    def random(self, *names: object) -> random.Random:
        """Return a generator that the seed and `names` determine."""
        return random.Random(f"{self.seed} {names}")
