import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import ARMS, logged, target_of

from pytest_tfgrpo.numerics.rl.offpolicy import OffPolicyEstimate, dr, ips, predictions, snips


def test_intervals_cover_what_the_policy_would_earn_on_logs_of_one_that_learned() -> None:
    covered = []
    for seed in range(30):
        rewards, contexts, arms, logs, truth = logged(seed)
        target = target_of(truth)
        found = dr(rewards, contexts, arms, target[contexts], logs)
        if found.low is not None and found.high is not None:
            covered.append(found.low <= (target * truth).sum(axis=1).mean() <= found.high)
    assert len(covered) > 20
    assert np.mean(covered) > 0.85


def test_a_weighted_mean_of_nearly_equal_rewards_is_not_taken_for_certain() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(300):
        arms = rng.random(200) < 0.5
        rewards = (rng.random(200) < np.where(arms, 0.985, 0.5)).astype(float)
        found = snips(rewards, arms.astype(float), np.full(200, 0.5))
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= 0.985 <= found.high)
    assert np.mean(held) > 0.93


def test_the_logging_policy_itself_is_worth_the_mean_reward() -> None:
    rewards, _, arms, logs, _ = logged(1)
    taken = logs[np.arange(len(arms)), arms]
    for estimate in (ips, snips):
        found = estimate(rewards, taken, taken)
        assert found.value == pytest.approx(rewards.mean())
        assert (found.ess, found.largest_weight) == (len(arms), 1)


def test_too_few_effective_decisions_are_not_estimable() -> None:
    _, _, arms, logs, _ = logged(2, 60)
    taken = logs[np.arange(60), arms]
    found = ips(np.ones(60), np.where(arms == 0, 1.0, 0.0), taken)
    assert found[:3] == (None, None, None)
    assert found.ess < 50
    assert "effective decisions; 50 are needed" in found.reason
    rare = np.zeros((60, ARMS))
    rare[:, arms[0]] = 1.0
    known = np.full((60, ARMS), 0.01)
    known[:, arms[0]] = 0.001  # weights of a thousand that happen not to come up
    unseen = np.full(60, (arms[0] + 1) % ARMS)
    assert dr(np.ones(60), np.zeros(60, dtype=int), unseen, rare, known).value is None


@given(st.integers(0, 10**6))
def test_the_model_of_rewards_sees_only_the_past(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, contexts, arms = rng.random(20), rng.integers(0, 3, 20), rng.integers(0, 4, 20)
    before = predictions(rewards, contexts, arms, 4)
    later = rng.integers(20)
    rewards[later:] = rng.random(20 - later)
    arms[later:] = rng.integers(0, 4, 20 - later)
    np.testing.assert_array_equal(predictions(rewards, contexts, arms, 4)[: later + 1], before[: later + 1])


def test_a_model_that_is_right_makes_the_interval_narrower() -> None:
    def width(found: OffPolicyEstimate) -> float:
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    rewards, contexts, arms, logs, truth = logged(3, 3_000)
    target = target_of(truth)[contexts]
    rows = np.arange(len(arms))
    doubly, plain = (
        dr(rewards, contexts, arms, target, logs),
        ips(rewards, target[rows, arms], logs[rows, arms]),
    )
    assert width(doubly) < 0.9 * width(plain)
    by_taken = dr(rewards, contexts, arms, target, logs[rows, arms])
    assert by_taken.value == doubly.value


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, float("nan")])
def test_a_propensity_that_is_none_is_refused_with_its_place(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"logged_N\[1\] is {bad}; a probability is above 0 and at most 1"):
        ips([1.0, 0.0], [0.5, 0.5], [0.5, bad])
    with pytest.raises(ValueError, match=r"reward_N\[0\] is nan"):
        snips([float("nan")], [0.5], [0.5])


def test_a_target_that_is_no_distribution_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"target_NA\[1\] sums to 1.8; it must be 1"):
        dr([1.0, 0.0], [0, 0], [0, 1], [[0.1, 0.9], [0.9, 0.9]], [0.5, 0.5])


@pytest.mark.parametrize("least", [5e-324, 1e-200])
def test_a_propensity_of_hardly_anything_leaves_nothing_to_estimate(least: float) -> None:
    n = 100
    logs, sure, rewards = np.full(n, 0.5), np.ones(n), np.arange(n) % 2.0
    logs[7] = least
    both, context = np.column_stack([sure, 0 * sure]), np.zeros(n, dtype=int)
    for found in (
        ips(rewards, sure, logs),
        snips(rewards, sure, logs),
        dr(rewards, context, context, both, logs),
        dr(rewards, context, context, both, np.column_stack([logs, 1 - logs])),
        dr(rewards, context, context + 1, both, np.column_stack([logs, 1 - logs])),
    ):
        assert found.value is None
        assert found.ess < 50


def test_no_decisions_are_not_estimable() -> None:
    assert ips([], [], []).value is None
    empty = np.zeros(0, dtype=int)
    assert dr([], empty, empty, np.zeros((0, 2)), []).value is None
