import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.rl.advantages import (
    Scale,
    group_advantage,
    grpo_advantage,
    informative,
    per_rollout,
    relative_rank,
    rloo_advantage,
)

NAN = math.nan
scores = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, NAN]), st.floats(0, 1, allow_subnormal=True), st.just(5e-324)
)
batches = st.lists(st.tuples(scores, st.integers(0, 6)), max_size=40)


def columns(batch: list[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v for v, _ in batch]), np.array([g for _, g in batch], dtype=int)


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ([1, 1, 0, 0], [5 / 6, 5 / 6, 1 / 6, 1 / 6]),
        ([1, 0.5, 0.5, 0], [1, 0.5, 0.5, 0]),
        ([0.3, 0.3, 0.3], [0.5, 0.5, 0.5]),
        ([0, 1], [0, 1]),
        ([0.7], [NAN]),
        ([NAN, 0.2, 0.9], [NAN, 0, 1]),
        ([NAN, 0.2], [NAN, NAN]),
        ([], []),
    ],
)
def test_the_worked_examples_of_decision_10_hold(values: list[float], ranks: list[float]) -> None:
    np.testing.assert_allclose(relative_rank(values, np.zeros(len(values), dtype=int)), ranks, rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "advantages"),
    [
        ([1, 1, 0, 0], [1, 1, -1, -1]),
        ([1, 0.5, 0], [math.sqrt(1.5), 0, -math.sqrt(1.5)]),
        ([0.1 + 0.2] * 3, [0, 0, 0]),
        ([0.4], [0]),
        ([5e-324, 0], [1, -1]),
        ([NAN, 1, 0], [NAN, 1, -1]),
    ],
)
def test_advantages_are_standard_scores_within_the_group(
    values: list[float], advantages: list[float]
) -> None:
    found = group_advantage(values, np.zeros(len(values), dtype=int))
    np.testing.assert_allclose(found, advantages, rtol=1e-12)


@given(batches)
def test_ranks_agree_with_the_definition_by_counting(batch: list[tuple[float, int]]) -> None:
    found = relative_rank(*columns(batch))
    for i, (value, group) in enumerate(batch):
        others = [v for j, (v, g) in enumerate(batch) if g == group and j != i and not math.isnan(v)]
        if math.isnan(value) or not others:
            assert math.isnan(found[i])
        else:
            worse, tied = sum(v < value for v in others), sum(v == value for v in others)
            assert found[i] == pytest.approx((worse + tied / 2) / len(others))


@given(batches)
def test_advantages_have_mean_0_and_deviation_1_or_are_exactly_0(batch: list[tuple[float, int]]) -> None:
    values, groups = columns(batch)
    found, spread = group_advantage(values, groups), informative(values, groups)
    for group in set(groups.tolist()):
        own = found[(groups == group) & ~np.isnan(values)]
        if own.size and spread[group]:
            assert own.mean() == pytest.approx(0, abs=1e-9)
            assert own.std() == pytest.approx(1)
        else:
            assert not own.any()


@given(batches, st.randoms(use_true_random=False))
def test_neither_order_nor_other_groups_matter(batch: list[tuple[float, int]], random) -> None:
    order = list(range(len(batch)))
    random.shuffle(order)
    values, groups = columns(batch)
    whole = relative_rank(values, groups)
    np.testing.assert_array_equal(relative_rank(values[order], groups[order]), whole[order])
    for group in set(groups.tolist()):
        own = groups == group
        np.testing.assert_array_equal(relative_rank(values[own], groups[own]), whole[own])


@given(batches, st.floats(0.01, 100))
def test_ranks_do_not_depend_on_scale(batch: list[tuple[float, int]], scale: float) -> None:
    values, groups = columns(batch)
    scaled = np.round(values, 6) * scale
    np.testing.assert_array_equal(relative_rank(scaled, groups), relative_rank(np.round(values, 6), groups))


def test_informative_says_which_groups_have_spread() -> None:
    values, groups = [1, 1, 1, 0, NAN, 0.5, NAN], [0, 0, 1, 1, 2, 2, 4]
    assert informative(values, groups).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("values", "groups", "complaint"),
    [
        ([1.0], [0, 1], "one length"),
        ([[1.0]], [[0]], "vectors"),
        ([1.0], [-1], "non-negative"),
        ([1.0], [0.5], "integers"),
        ([0.0, math.inf], [0, 0], r"finite or NaN, got inf at \[1\]"),
    ],
)
def test_misshapen_input_is_refused(values, groups, complaint: str) -> None:
    for function in (relative_rank, group_advantage, informative):
        with pytest.raises(ValueError, match=complaint):
            function(values, groups)


@given(
    st.floats(-(2.0**99), 2.0**99, width=32),
    st.integers(1, 40),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["group", "batch", "none"]),
)
def test_equal_rewards_give_exactly_0(value: float, size: int, dtype: type, scale: Scale) -> None:
    rewards, groups = np.full(size, value, dtype), np.zeros(size, dtype=int)
    for found in (grpo_advantage(rewards, groups, scale=scale), rloo_advantage(rewards, groups)):
        assert found.dtype == dtype
        assert not found.any()


@given(st.integers(2, 64), st.floats(-1e6, 1e6, width=32), st.sampled_from([np.float32, np.float64]))
def test_one_different_reward_among_equals_does_not_vanish(size: int, value: float, dtype: type) -> None:
    rewards = np.full(size, value, dtype)
    rewards[0] = np.nextafter(rewards[0], dtype(np.inf), dtype=dtype)
    found = grpo_advantage(rewards, np.zeros(size, dtype=int), eps=0.0)
    assert found[0] == pytest.approx((size - 1) / math.sqrt(size), rel=1e-5)
    assert rloo_advantage(rewards, np.zeros(size, dtype=int))[0] > 0


@given(batches, st.sampled_from(["group", "batch", "none"]))
def test_an_unscored_reward_has_no_influence(batch: list[tuple[float, int]], scale: Scale) -> None:
    values, groups = columns(batch)
    known = ~np.isnan(values)
    for function in (partial(grpo_advantage, scale=scale), rloo_advantage):
        found = function(values, groups)
        assert np.array_equal(found[known], function(values[known], groups[known]))
        assert not found[~known].any()
        assert np.isnan(function(values, groups, unscored="nan")[~known]).all()


@given(st.integers(0, 2**32 - 1), st.floats(-5, 5), st.floats(0.1, 10))
def test_shift_scale_order_and_names_of_groups_do_not_matter(seed: int, shift: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    rewards, groups = rng.normal(size=12), rng.integers(0, 4, 12)
    order = rng.permutation(12)
    for function in (partial(grpo_advantage, eps=0.0), partial(rloo_advantage, normalise=True, eps=0.0)):
        found = function(rewards, groups)
        np.testing.assert_allclose(function(scale * rewards + shift, groups), found, atol=1e-8)
        np.testing.assert_allclose(function(rewards[order], groups[order]), found[order], atol=1e-12)
        np.testing.assert_allclose(function(rewards, (groups * 7 + 3) % 29), found, atol=1e-12)
    np.testing.assert_allclose(rloo_advantage(rewards, np.zeros(12, dtype=int)).sum(), 0, atol=1e-12)


def test_leave_one_out_is_the_reward_less_the_mean_of_the_others() -> None:
    found = rloo_advantage([1.0, 0.0, 0.5, 0.7], [0, 0, 0, 1])
    np.testing.assert_allclose(found, [0.75, -0.75, 0, 0])
    assert rloo_advantage([0.7], [0], singleton="raw").tolist() == [0.7]


def test_rows_of_a_rollout_share_an_advantage_that_is_computed_once() -> None:
    rewards, rollouts, groups = [1.0, 1, 1, 0, 0.5], ["a", "a", "a", "b", "c"], [0, 0, 0, 0, 0]
    found = per_rollout(rewards, rollouts, groups, partial(grpo_advantage, eps=0.0))
    np.testing.assert_allclose(found, [1, 1, 1, -1, 0], atol=1e-12)
    with pytest.raises(ValueError, match=r"rows of rollout .*a.* differ in their reward"):
        per_rollout([1.0, 0.5], np.array(["a", "a"]), [0, 0])
    with pytest.raises(ValueError, match="differ in their group"):
        per_rollout([1.0, 1.0], ["a", "a"], [0, 1])


@pytest.mark.parametrize(("scale", "expected"), [("group", 0.7 / 1.25), ("batch", 0.7 / 1.25), ("none", 0.7)])
def test_a_raw_singleton_is_divided_only_where_a_scale_is(scale: Scale, expected: float) -> None:
    found = grpo_advantage([0.7, 0.0, 1.0], [0, 1, 1], scale=scale, eps=0.25, singleton="raw")
    assert found[0] == pytest.approx(expected)
