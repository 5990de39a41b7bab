"""Support: the figures behind a lesson, from its attempts and the lessons it continues."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from pytest_tfgrpo.core.lessons import Experience, Polarity, Reward, Support, ToolStat
from pytest_tfgrpo.learning.optimizer.contrast import Attempt


def reward_of(
    polarity: Polarity, attempts: Sequence[Attempt], same: Sequence[Experience], *, given: bool
) -> Reward:
    """Return the mean rewards of the rollouts that a lesson rests on; `given`: they were made elsewhere.

    Without attempts it is that of the lessons `same`; else only those of the same quantity count with it.

    A lesson to avoid something stores what that cost, one minus the scores of the rollouts that did it: so it
    ranks with the lessons to do something instead of vanishing (decision 12).
    """
    gained = polarity == "do"
    quantity = "total_reward" if given else "gt_score"
    if not attempts and same:
        quantity = same[0].reward.quantity
    alike = (lesson for lesson in same if lesson.reward.quantity == quantity)
    old = [(lesson.support.rollouts, lesson.reward) for lesson in alike]
    count = len(attempts) + sum(n for n, _ in old)
    own = sum(a.gt_score if gained else 1 - a.gt_score for a in attempts)
    rank = sum(a.relative_rank if gained else 1 - a.relative_rank for a in attempts)
    value = round((own + sum(n * r.value for n, r in old)) / count, 6)
    relative_rank = round((rank + sum(n * r.relative_rank for n, r in old)) / count, 6)
    if quantity == "total_reward":
        return Reward(total_reward=value, relative_rank=relative_rank)
    return Reward(gt_score=value, relative_rank=relative_rank)


def support_of(attempts: Sequence[Attempt], same: Sequence[Experience]) -> Support:
    """Return how many groups and rollouts a lesson rests on."""
    return Support(
        groups=len({a.group_id for a in attempts}) + sum(lesson.support.groups for lesson in same),
        rollouts=len(attempts) + sum(lesson.support.rollouts for lesson in same),
    )


def tool_stats_of(attempts: Sequence[Attempt], same: Sequence[Experience]) -> tuple[ToolStat, ...]:
    """Return the use of each tool over all that a lesson rests on, by name."""
    calls = [
        ToolStat(tool=c.name, tokens=c.tokens, latency_ms=c.latency_ms, cost_usd=c.cost_usd)
        for attempt in attempts
        for c in attempt.calls
    ]
    by_tool: dict[str, list[ToolStat]] = {}
    for stat in (*(stat for lesson in same for stat in lesson.tool_stats), *calls):
        by_tool.setdefault(stat.tool, []).append(stat)
    return tuple(_sum(tool, stats) for tool, stats in sorted(by_tool.items()))


def _sum(tool: str, stats: Sequence[ToolStat]) -> ToolStat:
    costs = [stat.cost_usd for stat in stats]
    return ToolStat(
        tool=tool,
        tokens=sum(stat.tokens for stat in stats),
        latency_ms=round(sum(stat.latency_ms for stat in stats), 3),
        cost_usd=None if None in costs else fsum(cost for cost in costs if cost is not None),
    )
