import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tool_choice import learned

from pytest_tfgrpo.numerics.rl import softmax
from pytest_tfgrpo.numerics.rl.losses import Loss
from pytest_tfgrpo.numerics.rl.softmax import (
    ArmPolicy,
    Decisions,
    arm_kl,
    arm_log_probs,
    grpo_step,
    log_prob_gradient,
    ppo_step,
    probabilities,
    rloo_step,
    uniform_policy,
)

METHODS = ("ppo", "grpo", "rloo")
floors = st.sampled_from([0.0, 0.01, 0.2])


def random_policy(seed: int, floor: float = 0.01, scale: float = 2.0) -> ArmPolicy:
    rng = np.random.default_rng(seed)
    return ArmPolicy(scale * rng.normal(size=4), scale * rng.normal(size=(3, 4)), floor)


def decided(policy: ArmPolicy, seed: int, n: int = 60) -> Decisions:
    rng = np.random.default_rng(seed)
    contexts, arms = rng.integers(0, 3, n), rng.integers(0, 4, n)
    return Decisions(contexts, arms, arm_log_probs(policy, contexts, arms))


@given(st.integers(0, 10**6), floors, st.sampled_from([0.0, 1.0, 500.0]))
def test_probabilities_sum_to_1_and_none_falls_below_the_floor(seed: int, floor: float, scale: float) -> None:
    p = probabilities(random_policy(seed, floor, scale))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= floor).all()


@given(st.integers(0, 10**6), floors)
def test_the_gradient_of_log_probabilities_is_exact(seed: int, floor: float) -> None:
    policy = random_policy(seed, floor, 1.0)
    contexts, arms, slopes = np.array([0, 2, 2]), np.array([1, 0, 3]), np.array([0.5, -1.0, 2.0])
    found = log_prob_gradient(policy, contexts, arms, slopes)

    def value(shared: np.ndarray, own: np.ndarray) -> float:
        return float(slopes @ arm_log_probs(ArmPolicy(shared, own, floor), contexts, arms))

    step = 1e-6
    for arm in range(4):
        move = step * np.eye(4)[arm]
        ahead, behind = (value(policy.shared_A + s * move, policy.own_CA) for s in (1, -1))
        assert found.shared_A[arm] == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)
        for context in range(3):
            own = np.zeros((3, 4))
            own[context, arm] = step
            ahead, behind = (value(policy.shared_A, policy.own_CA + s * own) for s in (1, -1))
            assert found.own_CA[context, arm] == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)


@given(st.integers(0, 10**6), floors)
def test_a_divergence_is_never_below_0_and_0_from_itself(seed: int, floor: float) -> None:
    one, other = random_policy(seed, floor), random_policy(seed + 1, floor)
    weights = np.random.default_rng(seed).random(3)
    p, q = probabilities(one), probabilities(other)
    expected = weights @ (p * np.log(p / q)).sum(axis=1) / weights.sum()
    assert arm_kl(one, other, weights) == pytest.approx(expected)
    assert arm_kl(one, one, weights) == 0
    assert arm_kl(one, other, np.zeros(3)) == 0


@given(st.integers(0, 10**6), st.sampled_from([1e-4, 0.01, 0.3]), st.sampled_from([0.1, 10.0, 1e4]))
def test_a_step_is_halved_until_the_exact_divergence_is_within_bounds(
    seed: int, most: float, rate: float
) -> None:
    policy = random_policy(seed, 0.01, 0.5)
    decisions = decided(policy, seed)
    rewards, groups = np.random.default_rng(seed).random(60), np.arange(60) // 6
    weights = np.bincount(decisions.context_N, minlength=3)
    for step in (
        ppo_step(policy, decisions, rewards - 0.5, rate=rate, epochs=3, max_kl=most),
        grpo_step(policy, decisions, rewards, groups, rate=rate, max_kl=most),
        rloo_step(policy, decisions, rewards, groups, rate=rate, max_kl=most),
    ):
        assert step.metrics["kl"] <= most
        assert arm_kl(policy, step.policy, weights) == pytest.approx(step.metrics["kl"])


def test_advantages_of_0_move_nothing_and_a_good_arm_becomes_likelier() -> None:
    policy = uniform_policy(3, 4, 0.01)
    decisions = decided(policy, 1)
    still = ppo_step(policy, decisions, np.zeros(60), rate=1.0, entropy=0.0)
    assert np.array_equal(still.policy.own_CA, policy.own_CA)
    good = ppo_step(policy, decisions, (decisions.arm_N == 2) - 0.25, rate=1.0)
    assert (probabilities(good.policy)[:, 2] > 0.25).all()


def test_equal_seeds_give_equal_steps() -> None:
    policy = random_policy(3)
    decisions, advantages = decided(policy, 3), np.random.default_rng(3).normal(size=60)
    one, other = (ppo_step(policy, decisions, advantages, rate=1.0, epochs=2, seed=5) for _ in range(2))
    assert np.array_equal(one.policy.own_CA, other.policy.own_CA)


def test_the_entropy_s_share_pulls_towards_the_uniform_policy() -> None:
    policy = random_policy(2, 0.01, 1.0)
    pulled = ppo_step(policy, decided(policy, 2, 400), np.zeros(400), rate=5.0, entropy=1.0).policy
    assert (
        -(probabilities(pulled) * np.log(probabilities(pulled))).sum()
        > -(probabilities(policy) * np.log(probabilities(policy))).sum()
    )


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="the floor is too high"):
        uniform_policy(2, 4, 0.25)
    policy = uniform_policy(3, 4)
    with pytest.raises(ValueError, match="arm_N must be a vector of whole numbers from 0 to 3"):
        arm_log_probs(policy, [0], [4])
    with pytest.raises(ValueError, match=r"advantage_N\[0\] is nan"):
        ppo_step(policy, Decisions(np.array([0]), np.array([0]), np.zeros(1)), [math.nan], rate=1.0)


@pytest.mark.parametrize("how", METHODS)
def test_a_policy_learns_which_tool_each_step_needs(how: str) -> None:
    assert learned(how, 0) >= 0.9  # type: ignore[arg-type]


@pytest.mark.parametrize("how", METHODS)
def test_a_wrong_sign_of_the_advantage_the_ratio_or_the_gradient_would_be_seen(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert learned(how, 0, episodes=640, sign=-1.0) < 0.25  # type: ignore[arg-type]
    right_loss, right = softmax.policy_loss, softmax.log_prob_gradient

    def inverted(new: Any, old: Any, *more: Any, **options: Any) -> Loss:
        """The loss of exp(old - new), by the chain rule."""
        found = right_loss(old, new, *more, **options)
        return found._replace(gradient=-found.gradient)

    with monkeypatch.context() as patch:
        patch.setattr(softmax, "policy_loss", inverted)
        if how != "rloo":  # which takes one step without a ratio
            assert learned(how, 0, episodes=640) < 0.25  # type: ignore[arg-type]
    monkeypatch.setattr(
        softmax, "log_prob_gradient", lambda policy, c, a, slope: right(policy, c, a, -np.asarray(slope))
    )
    assert learned(how, 0, episodes=640) < 0.25  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.sampled_from([0.1, 2.0, 300.0]))
def test_shares_are_raised_to_their_least_and_the_others_keep_their_proportions(
    seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    logits_CA = scale * rng.normal(size=(5, 4))
    least_CA = rng.dirichlet(np.ones(4), size=5) * np.array([1.0, 0.9, 0.5, 0.01, 0.0])[:, None]
    found_CA = softmax.raise_shares(logits_CA, least_CA)
    before_CA, after_CA = (np.exp(x - np.logaddexp.reduce(x, axis=1)[:, None]) for x in (logits_CA, found_CA))
    assert np.isfinite(found_CA).all()
    assert (after_CA >= least_CA - 1e-9).all()
    assert found_CA[4].tolist() == logits_CA[4].tolist()
    for before, after, least in zip(before_CA, after_CA, least_CA, strict=True):
        free = (after > least + 1e-9) & (before > 1e-12)
        assert (
            np.ptp(after[free] / before[free]) <= 1e-6 * after[free].max() / before[free].min()
            if free.any()
            else True
        )
        assert (after[free] <= before[free] + 1e-9).all()


def test_a_step_is_halved_until_it_is_near_enough() -> None:
    old, new = random_policy(1), random_policy(2)
    weight_C = np.ones(3)
    assert arm_kl(old, new, weight_C) > 0.05
    found = softmax.within_kl(old, new, weight_C, 0.05)
    assert 0.005 < arm_kl(old, found, weight_C) <= 0.05
    assert softmax.within_kl(old, old, weight_C, 0.05) == old
