"""Passes: how many rollouts of a group passed every check, and pass@k over groups."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING

from pytest_tfgrpo.numerics.stats import mean_of, pass_at_k

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Group


def solved(group: Group) -> int:
    """Return how many rollouts of a group passed every check."""
    return sum(s.gt_score is not None and s.gt_score >= 1.0 for s in group.scores)


class Passes:
    """How many rollouts of each group have a score, and how many of them passed every check."""

    def __init__(self, groups: Iterable[Group] = ()) -> None:
        """Take some groups."""
        self._n_K, self._c_K = array("l"), array("l")
        for group in groups:
            self.add(group)

    def add(self, group: Group) -> None:
        """Take one more group."""
        self._n_K.append(sum(s.gt_score is not None for s in group.scores))
        self._c_K.append(solved(group))

    def at(self, k: int) -> float | None:
        """Return pass@k, the mean over scenarios with at least k scored rollouts; None without any.

        A group that lost rollouts to errors has no pass@G: guessing from fewer would favour it or harm it.
        """
        known_K = [value for value in pass_at_k(self._n_K, self._c_K, k) if not isnan(value)]
        return mean_of(known_K) if known_K else None
