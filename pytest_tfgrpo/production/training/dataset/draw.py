"""Which attempts of a pool a dataset has: groups with different rewards, no user too often, not too many."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.training.dataset.pool import AttemptPool, PoolAttempt
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest

PARTS = 20
"""A user or session has at most one part of so many; one attempt in any case."""
LARGEST_GROUP = 1000
"""Attempts; what the format allows."""


@dataclass(kw_only=True, slots=True)
class DatasetDraw:
    """What was drawn."""

    attempts: int = 0
    groups: int = 0
    without_session: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def draw(pool: AttemptPool, asked: DatasetRequest) -> DatasetDraw:
    """Put the drawn attempts into the table `drawn` of the pool."""
    target = pool.size()
    target = min(target, asked.sample_size or target)
    owned: dict[int, int] = {}
    while True:
        share = _share(target)
        found = _Drawing(pool, asked, target, share).all()
        if _share(found.attempts) >= share:
            return found
        owned = owned or pool.owned()
        target = _reachable(found.attempts, owned)


def _share(attempts: int) -> int:
    return max(1, attempts // PARTS)


def _reachable(target: int, owned: Mapping[int, int]) -> int:
    """Return how many attempts there can be at most, by the numbers of owners with so many each."""
    while True:
        share = _share(target)
        found = min(target, sum(owners * min(each, share) for each, owners in owned.items()))
        if _share(found) >= share:
            return found
        target = found


class _Drawing:
    """One pass over the tasks, with a share that no owner exceeds."""

    def __init__(self, pool: AttemptPool, asked: DatasetRequest, target: int, share: int) -> None:
        self._pool, self._asked = pool, asked
        self._target, self._share = target, share
        self._had: Counter[str] = Counter()
        self._found = DatasetDraw()

    def all(self) -> DatasetDraw:
        self._pool.db.execute("DELETE FROM pool.drawn")
        found = self._found
        full = "not_drawn" if self._target == self._asked.sample_size else "user_share"
        for task, count in self._pool.tasks():
            room = min(LARGEST_GROUP, self._target - found.attempts)
            if room < 2:
                found.left_out[full] += count
                continue
            kept = self._kept(task, self._pool.group(task), room)
            if not kept:
                continue
            found.attempts += len(kept)
            found.groups += 1
            found.without_session += sum(one.owner is None for one in kept)
            self._had.update(one.owner for one in kept if one.owner is not None)
            rows = ((one.seq, task, one.total) for one in kept)
            self._pool.db.executemany("INSERT INTO pool.drawn VALUES (?, ?, ?)", rows)
        return found

    def _kept(self, task: str, group: Sequence[PoolAttempt], room: int) -> list[PoolAttempt]:
        """Return what is drawn of a group, and count the rest."""
        left_out = self._found.left_out
        if reason := self._unusable(group):  # once some are gone
            left_out[reason] += len(group)
            return []
        order = list(group)
        random.Random(f"{self._asked.seed}:{task}").shuffle(order)
        mine = self._within_share(order)
        left_out["user_share"] += len(group) - len(mine)
        if self._unusable(mine):
            left_out["user_share"] += len(mine)
            return []
        kept = _trimmed(mine, room)
        left_out["not_drawn"] += len(mine) - len(kept)
        return kept

    def _unusable(self, group: Sequence[PoolAttempt]) -> str:
        totals = [one.total for one in group]
        return self._pool.unusable(len(totals), min(totals, default=0.0), max(totals, default=0.0))

    def _within_share(self, order: Sequence[PoolAttempt]) -> list[PoolAttempt]:
        now: Counter[str] = Counter()
        kept = []
        for one in order:
            if one.owner is not None:
                if self._had[one.owner] + now[one.owner] >= self._share:
                    continue
                now[one.owner] += 1
            kept.append(one)
        return kept


def _trimmed(order: list[PoolAttempt], room: int) -> list[PoolAttempt]:
    """Return `room` attempts at most, two or more: the best, the worst, and the first of the others."""
    if len(order) <= room:
        return order
    ends = [max(order, key=lambda one: one.total), min(order, key=lambda one: one.total)]
    return [*ends, *(one for one in order if one not in ends)][:room]
