"""What the triggers look at, counted in the view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.view.view import REWARDS, TRAJECTORIES, LoopView

WINDOW = 500
"""Runs of the live version at its begin, and its newest ones, that are compared."""
_NEGATIVE = """(type IN ('thumbs_down', 'correction', 'abandonment')
    OR type = 'rating' AND json_extract(slim, '$.rating') <= 2)"""
_GIVEN = "type IN ('thumbs_up', 'thumbs_down', 'rating', 'correction', 'abandonment')"


class RewardSum(NamedTuple):
    """Rewards of some runs."""

    n: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        """Their mean; NaN of none."""
        return self.total / self.n if self.n else math.nan


class FeedbackCount(NamedTuple):
    """Feedback that was given, and how much of it says that something was bad."""

    given: int = 0
    negative: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerFigures:
    """What is known at some time."""

    watermark: int
    """Sequence of the newest trajectory."""
    rewards: int = 0
    """Sequence of the newest reward."""
    new: int = 0
    """Trajectories since the last cut."""
    version: str = ""
    """The live one."""
    first: RewardSum = RewardSum()
    """Of the version's first runs."""
    last: RewardSum = RewardSum()
    """Of its newest runs, none of them among the first."""
    day: FeedbackCount = FeedbackCount()
    """In the last 24 hours."""
    week: FeedbackCount = FeedbackCount()
    """In the 7 days before."""


def figures_of(view: LoopView, now: datetime, *, since: int, compared: int = 0) -> TriggerFigures:
    """Return the figures; `since` is the last cut's watermark. Raises BusError.

    Runs of the live version up to `compared` are not among its newest ones: they have asked once.
    """
    version = _live_version(view)
    first, last = _windows(view, version, compared)
    new = view.rows("SELECT count(*) FROM trajectories WHERE seq > ?", (since,))[0][0]
    day, week = now - timedelta(days=1), now - timedelta(days=8)
    return TriggerFigures(
        watermark=view.position(TRAJECTORIES),
        rewards=view.position(REWARDS),
        new=int(new),
        version=version,
        first=first,
        last=last,
        day=_feedback(view, day, now),
        week=_feedback(view, week, day),
    )


def _live_version(view: LoopView) -> str:
    """Return the version of most of the newest runs that name one; empty where none does."""
    query = f"""SELECT policy_version FROM (SELECT policy_version, seq FROM trajectories
        ORDER BY seq DESC LIMIT {WINDOW}) WHERE policy_version IS NOT NULL
        GROUP BY policy_version ORDER BY count(*) DESC, max(seq) DESC LIMIT 1"""
    found = view.rows(query)
    return str(found[0][0]) if found else ""


def _windows(view: LoopView, version: str, compared: int) -> tuple[RewardSum, RewardSum]:
    """Return the rewards of a version's first and of its newest runs, with no run in both."""
    if not version:
        return RewardSum(), RewardSum()
    head = _rewards(view, version, "ASC", 2 * WINDOW)
    if len(head) < 2 * WINDOW:  # these are all
        half = len(head) // 2
        first, tail = head[:half], head[half:]
    else:
        first, tail = head[:WINDOW], _rewards(view, version, "DESC", WINDOW)
    return _sum(first), _sum([row for row in tail if row[0] > compared])


def _rewards(view: LoopView, version: str, order: str, most: int) -> list[tuple[int, float]]:
    query = f"""SELECT t.seq, r.total FROM trajectories t JOIN rewards r ON r.id = (SELECT id FROM rewards
        WHERE trajectory_id = t.id AND own ORDER BY revision DESC LIMIT 1)
        WHERE t.policy_version = ? ORDER BY t.seq {order} LIMIT {most}"""
    return [(int(seq), float(total)) for seq, total in view.rows(query, (version,))]


def _sum(rows: Sequence[tuple[int, float]]) -> RewardSum:
    return RewardSum(len(rows), math.fsum(total for _, total in rows))


def _feedback(view: LoopView, start: datetime, end: datetime) -> FeedbackCount:
    query = f"""SELECT count(*), coalesce(sum({_NEGATIVE}), 0) FROM feedback
        WHERE {_GIVEN} AND NOT dead AND time > ? AND time <= ?"""
    given, negative = view.rows(query, (utc_time(start.isoformat()), utc_time(end.isoformat())))[0]
    return FeedbackCount(int(given), int(negative))
