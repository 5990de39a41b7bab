"""Contrasts: who won in a group, by what the rewarders made of the checks."""

from dataclasses import replace

from support.builders import make_group

from pytest_tfgrpo.learning.optimizer.contrast import attempts_of


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
