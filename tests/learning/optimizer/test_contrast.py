"""Contrasts: who won in a group, by what the rewarders made of the checks."""

from dataclasses import replace

import pytest
from support.builders import make_group

from pytest_tfgrpo.learning.optimizer.contrast import (
    Attempt,
    AttemptCall,
    attempts_of,
    best_arguments,
    best_way,
    worst_tool,
)


def test_the_reward_says_who_won_and_not_the_checks_alone() -> None:
    group = make_group([1.0, 0.0, 0.5])
    rewards = (0.2, 0.8, 0.5)
    scores = tuple(replace(s, reward=r) for s, r in zip(group.scores, rewards, strict=True))
    found = attempts_of(replace(group, scores=scores))
    assert [a.sign for a in found] == [-1, 1, 0]
    assert [(a.reward, a.gt_score) for a in found] == [(0.2, 1.0), (0.8, 0.0), (0.5, 0.5)]


def test_where_there_is_one_score_it_stands_for_both() -> None:
    group = make_group([1.0, 0.0, None])
    checked, rewarded, error = group.scores
    scores = (replace(checked, reward=None), replace(rewarded, gt_score=None), error)
    assert [(a.reward, a.gt_score, a.sign) for a in attempts_of(replace(group, scores=scores))] == [
        (1.0, 1.0, 1),
        (0.0, 0.0, -1),
    ]


def attempt(sign: int, *tools: str, keys: tuple[str, ...] = (), forms: tuple[str, ...] = ()) -> Attempt:
    """Return an attempt that called tools: the last one with some keys, the others with ``deep``."""
    calls = tuple(
        AttemptCall(
            name=tool,
            tokens=1,
            latency_ms=1.0,
            cost_usd=None,
            keys=frozenset(keys if tool == tools[-1] else ["deep"]),
        )
        for tool in tools
    )
    won = float(sign > 0)
    return Attempt(
        group_id="g", index=0, reward=won, gt_score=won, relative_rank=0.5, sign=sign,
        tools=tools, tools_tried=frozenset(tools), calls=calls, forms=forms,
    )  # fmt: skip


def test_an_argument_is_told_with_the_tool_that_winners_gave_it_to() -> None:
    won = [attempt(1, "count", "search", keys=("limit", "query"))] * 2
    lost = [attempt(-1, "count", "search", keys=("query",))] * 2
    found = best_arguments([*won, *lost])
    assert found is not None
    assert (found.advice, found.attempts) == ("call search with limit", tuple(won))
    assert best_arguments(won) is None
    assert best_arguments(lost) is None
    assert best_arguments([*won, *(replace(one, sign=-1) for one in won)]) is None


@pytest.mark.parametrize(
    ("tried", "spared", "advice"),
    [
        ([(-1, "a"), (-1, "a"), (1, "b")], [], "avoid a"),
        ([(-1, "a"), (-1, "a"), (1, "b")], ["a"], None),
        ([(-1, "a"), (1, "b")], [], None),
        ([(-1, "a"), (-1, "a"), (-1, "a"), (1, "a")], [], "avoid a"),
        ([(-1, "a"), (-1, "a"), (1, "a")], [], None),
        ([(-1, "b"), (-1, "b"), (-1, "b"), (-1, "a"), (-1, "a"), (1, "b")], [], "avoid b"),
        ([(-1, "b"), (-1, "b"), (0, "b"), (-1, "a"), (-1, "a")], [], "avoid a"),
        ([(-1, "b"), (-1, "b"), (-1, "a"), (-1, "a")], [], "avoid a"),
    ],
)
def test_the_tool_that_cost_most_is_that_of_losers(
    tried: list[tuple[int, str]], spared: list[str], advice: str | None
) -> None:
    found = worst_tool([attempt(sign, tool) for sign, tool in tried], spared)
    assert (None if found is None else found.advice) == advice
    if found is not None:
        assert {one.tools for one in found.attempts} == {(found.advice[-1],)}


@pytest.mark.parametrize(("usual", "others", "best"), [(0.9, 0.0, "count"), (0.8, 0.6, "guess")])
def test_a_lucky_group_counts_for_less_than_several_good_ones_the_worse_the_rest_is(
    usual: float, others: float, best: str
) -> None:
    good = [replace(attempt(1, "count"), group_id=f"g{n}", reward=usual) for n in range(3)]
    lucky = replace(attempt(1, "guess"), group_id="g3", reward=1.0)
    lost = [replace(attempt(-1, "wait"), group_id=f"g{n}", reward=others) for n in range(4)]
    found = best_way([*good, lucky, *lost], {})
    assert found is not None
    assert {one.tools for one in found.attempts} == {(best,)}
