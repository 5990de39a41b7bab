"""What a lesson rests on: its attempts, and the lessons that it continues."""

from typing import Any

import pytest
from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Reward, Support, ToolStat
from pytest_tfgrpo.learning.optimizer.contrast import Attempt, AttemptCall
from pytest_tfgrpo.learning.optimizer.support import reward_of, support_of, tool_stats_of


def attempt(group: str = "g", gt: float = 1.0, rank: float = 0.5, calls: tuple[Any, ...] = ()) -> Attempt:
    return Attempt(
        group_id=group, index=0, reward=gt, gt_score=gt, relative_rank=rank, sign=1, tools=(),
        tools_tried=frozenset(), calls=calls, forms=(),
    )  # fmt: skip


OLD = make_experience(
    reward=Reward(gt_score=0.5, relative_rank=0.25),
    support=Support(groups=2, rollouts=3),
    tool_stats=(ToolStat(tool="b", tokens=5, latency_ms=1.0, cost_usd=0.5),),
)


@pytest.mark.parametrize(
    ("polarity", "attempts", "same", "reward"),
    [
        ("do", [attempt(gt=1.0, rank=0.5), attempt(gt=0.5, rank=1.0)], [], (0.75, 0.75)),
        ("avoid", [attempt(gt=0.0, rank=0.25), attempt(gt=0.5, rank=0.25)], [], (0.75, 0.75)),
        ("do", [attempt(gt=1.0, rank=1.0)], [OLD], (0.625, 0.4375)),
        ("avoid", [], [OLD], (0.5, 0.25)),
        ("do", [attempt(gt=1 / 3, rank=2 / 3)], [], (0.333333, 0.666667)),
    ],
)
def test_its_reward_is_the_mean_over_all_rollouts_and_of_one_to_avoid_what_they_lost(
    polarity: Any, attempts: list[Attempt], same: list[Any], reward: tuple[float, float]
) -> None:
    found = reward_of(polarity, attempts, same, given=False)
    assert (found.gt_score, found.total_reward, found.relative_rank) == (reward[0], None, reward[1])


GIVEN = make_experience(
    reward=Reward(total_reward=0.5, relative_rank=0.25), support=Support(groups=2, rollouts=3)
)


@pytest.mark.parametrize(
    ("attempts", "same", "given", "reward"),
    [
        ([attempt(gt=1.0, rank=1.0)], [], True, Reward(total_reward=1.0, relative_rank=1.0)),
        ([attempt(gt=1.0, rank=1.0)], [GIVEN], True, Reward(total_reward=0.625, relative_rank=0.4375)),
        ([attempt(gt=1.0, rank=1.0)], [GIVEN], False, Reward(gt_score=1.0, relative_rank=1.0)),
        ([attempt(gt=1.0, rank=1.0)], [OLD], True, Reward(total_reward=1.0, relative_rank=1.0)),
        ([], [GIVEN], False, Reward(total_reward=0.5, relative_rank=0.25)),
    ],
)
def test_rewards_of_production_and_scores_of_checks_are_never_mixed(
    attempts: list[Attempt], same: list[Any], given: bool, reward: Reward
) -> None:
    assert reward_of("do", attempts, same, given=given) == reward


@pytest.mark.parametrize("both", [{}, {"gt_score": 1.0, "total_reward": 1.0}])
def test_a_reward_is_one_of_the_two(both: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="either gt_score or total_reward"):
        assert Reward(relative_rank=1.0, **both).value


def test_its_support_counts_groups_once_and_those_of_what_it_continues() -> None:
    found = support_of([attempt("g1"), attempt("g1"), attempt("g2")], [OLD, OLD])
    assert (found.groups, found.rollouts) == (6, 9)


def test_tools_are_summed_by_name_and_an_unknown_cost_leaves_the_sum_unknown() -> None:
    def call(name: str, cost: float | None) -> AttemptCall:
        return AttemptCall(name=name, tokens=2, latency_ms=0.1234, cost_usd=cost, keys=frozenset())

    made = attempt(calls=(call("b", 0.25), call("a", 0.1), call("a", None)))
    assert tool_stats_of([made], [OLD]) == (
        ToolStat(tool="a", tokens=4, latency_ms=0.247, cost_usd=None),
        ToolStat(tool="b", tokens=7, latency_ms=1.123, cost_usd=0.75),
    )


def test_every_tool_of_a_lesson_that_is_continued_counts() -> None:
    tools = tuple(ToolStat(tool=name, tokens=1, latency_ms=1.0, cost_usd=0.5) for name in "ab")
    assert tool_stats_of([], [make_experience(tool_stats=tools)]) == tools
