"""The index of the lesson store: where each line is, and which lessons rank first (decision 16)."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.harness.learning.library.store_lines import StoredRow

UNSORTED = 4096
"""A ranking takes up to this many new rows before it is sorted again."""

SortKey: TypeAlias = tuple[float, int, int]
"""(-raw score, -time, row): ascending keys are descending preference."""
StampedDomain: TypeAlias = tuple[str, bytes]
"""(domain, stamp): what a prompt asks for."""


class ExperienceIndex:
    """Columns over the experiences on file, in order of appending."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._offset, self._length = array("q"), array("i")
        self._gt, self._rank = array("d"), array("d")
        self._created, self._group = array("q"), array("q")
        self._hidden = bytearray()
        self._gone: set[str] = set()
        self._parts: dict[StampedDomain, array[int]] = {}
        self._rankings: dict[tuple[StampedDomain, tuple[float, float]], _Ranking] = {}

    def add(self, row: StoredRow, offset: int, length: int) -> None:
        """Take in an experience whose line is at `offset`; one that is known already is left as it is."""
        if row.id in self.rows:
            return
        number = len(self.rows)
        self.rows[row.id] = number
        self._offset.append(offset)
        self._length.append(length)
        self._gt.append(row.gt_score)
        self._rank.append(row.relative_rank)
        self._created.append(row.created)
        self._group.append(hash(row.group))
        self._hidden.append(row.id in self._gone)
        part = self._parts.get((row.domain, row.stamp))
        if part is None:
            part = self._parts[row.domain, row.stamp] = array("i")
        part.append(number)
        for parent in row.parents:
            self.hide(parent)

    def hide(self, id: str) -> None:
        """Take an experience out of the rankings, whether it is known yet or not."""
        self._gone.add(id)
        if id in self.rows:
            self._hidden[self.rows[id]] = True

    def place(self, row: int) -> tuple[int, int]:
        """Return (offset, length) of the line of a row."""
        return self._offset[row], self._length[row]

    def group(self, row: int) -> int:
        """Return a number that rows of one source group share."""
        return self._group[row]

    def preferred(
        self, domain: str, stamp: str | None, weights: tuple[float, float]
    ) -> Iterator[tuple[float, int, int]]:
        """Yield (raw score, time, row) of the active rows of a domain (and stamp), best first."""
        asked = [p for p in self._parts if p[0] == domain and stamp in (None, p[1].decode("ascii"))]
        for negative, time, row in heapq.merge(*(self._keys(part, weights) for part in asked)):
            if not self._hidden[row]:
                yield -negative, -time, row

    def _keys(self, part: StampedDomain, weights: tuple[float, float]) -> Iterator[SortKey]:
        ranking = self._rankings.get((part, weights))
        if ranking is None:
            ranking = self._rankings[part, weights] = _Ranking()
        rows = self._parts[part]
        if len(rows) - ranking.sorted_count > UNSORTED:
            ranking.best = self._sorted(rows, weights)
            ranking.sorted_count = len(rows)
        if ranking.sorted_count + len(ranking.recent) != len(rows):
            ranking.recent = sorted(self._key(row, weights) for row in rows[ranking.sorted_count :])
        best = (self._key(row, weights) for row in map(int, ranking.best))
        return heapq.merge(best, ranking.recent)

    def _key(self, row: int, weights: tuple[float, float]) -> SortKey:
        return -(weights[0] * self._gt[row] + weights[1] * self._rank[row]), -self._created[row], row

    def _sorted(self, part: array[int], weights: tuple[float, float]) -> npt.NDArray[np.int32]:
        rows = np.array(part, dtype=np.int32)
        rows = rows[np.frombuffer(self._hidden, np.uint8)[rows] == 0]
        scores = weights[0] * np.frombuffer(self._gt)[rows] + weights[1] * np.frombuffer(self._rank)[rows]
        times = np.frombuffer(self._created, np.int64)[rows]
        order: npt.NDArray[np.int32] = rows[np.lexsort((-times, -scores))]
        return order


class _Ranking:
    """One order of preference over a part: sorted rows, and the keys of those that came since."""

    def __init__(self) -> None:
        self.best: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.recent: list[SortKey] = []
        self.sorted_count = 0
