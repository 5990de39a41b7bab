"""The last 1,000 values and their exact moments."""

from __future__ import annotations

from pytest_tfgrpo.production.rewards.evidence import EVALUATOR
from pytest_tfgrpo.production.rewards.history import TRAILING, Moments, RewardHistory, TrailingValues


def test_moments_are_those_of_the_values_there_are() -> None:
    values = TrailingValues()
    for key, value in (("a", 2), ("b", 3), ("a", 5)):
        values.put(key, value)
    assert values.items() == [("a", 5), ("b", 3)]
    assert values.moments() == values.moments("nobody") == Moments(2, 8, 34)
    assert values.moments("a") == Moments(1, 3, 9)
    values.remove("nobody")
    assert values.moments() == Moments(2, 8, 34)
    values.remove("a")
    assert values.moments() == Moments(1, 3, 9)


def test_the_oldest_value_beyond_1000_goes() -> None:
    values = TrailingValues()
    for n in range(TRAILING):
        values.put(str(n), n)
    assert (len(values), "0" in values) == (1000, True)
    values.put("more", 7)
    assert (len(values), "0" in values, "1" in values) == (1000, False, True)
    assert values.moments().total == sum(range(TRAILING)) + 7


def test_only_rewards_that_were_computed_here_join() -> None:
    reward = {"trajectory_id": "a", "reward_components": {"tone": {"score": 0.5}}, "metadata": {}}
    own = {**reward, "trajectory_id": "b", "metadata": {"evaluator": EVALUATOR}}
    history = RewardHistory()
    history.rebuild([reward, own])
    assert [key for key, _ in history.scores("tone").items()] == ["b"]


def test_a_component_that_a_revision_has_no_longer_leaves_the_history() -> None:
    def reward(revision: int, *names: str) -> dict[str, object]:
        return {
            "trajectory_id": "a",
            "reward_components": {name: {"score": 0.5} for name in names},
            "metadata": {"evaluator": EVALUATOR, "revision": revision},
        }

    history = RewardHistory()
    history.join(reward(1, "style", "tests"))
    history.join(reward(2, "tests"))
    assert {name: len(values) for name, values in history.components.items()} == {"style": 0, "tests": 1}
