"""Lessons: a reward is one of two quantities, never both and never neither."""

import pytest

from pytest_tfgrpo.core.lessons import Reward, from_evidence


def test_a_reward_is_of_the_runs_own_agent_or_of_production() -> None:
    own = Reward(gt_score=0.5, relative_rank=1.0)
    given = Reward(total_reward=0.25, relative_rank=1.0)
    assert (own.quantity, own.value, from_evidence(own)) == ("gt_score", 0.5, "")
    assert (given.quantity, given.value, from_evidence(given)) == (
        "total_reward",
        0.25,
        " of production evidence",
    )
    assert Reward(gt_score=0.0, relative_rank=0.0).value == 0.0
    assert Reward(total_reward=0.0, relative_rank=0.0).quantity == "total_reward"


@pytest.mark.parametrize("both", [{}, {"gt_score": 0.5, "total_reward": 0.5}])
def test_a_reward_of_neither_or_of_both_has_no_value(both: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a reward has either gt_score or total_reward"):
        _ = Reward(**both, relative_rank=0.0).value
