import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.rl.returns import (
    discounted_returns,
    gae,
    gae_packed,
    gae_ragged,
    gae_tokens,
    lambda_returns,
    pack,
    vtrace,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(1, 9), st.integers(1, 4))
factors = st.sampled_from([0.0, 0.3, 0.95, 1.0])


def played(seed: int, shape: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    r, v, after = rng.normal(size=(3, *shape))
    over = rng.random(shape) < 0.2
    return [r, v, after, over, (rng.random(shape) < 0.2) & ~over]


@given(seeds, sizes, factors, factors)
def test_advantages_obey_the_recursion_of_the_paper(
    seed: int, shape: tuple[int, int], gamma: float, lam: float
) -> None:
    r, v, after, over, cut = played(seed, shape)
    found, returns = gae(r, v, after, over, cut, gamma=gamma, lam=lam)
    later = np.vstack([found[1:], np.zeros((1, shape[1]))])
    delta = r + gamma * np.where(over, 0, after) - v
    np.testing.assert_allclose(found, delta + gamma * lam * np.where(over | cut, 0, later), atol=1e-12)
    np.testing.assert_allclose(returns, found + v, atol=1e-12)


@given(seeds, st.integers(1, 12), factors)
def test_gae_of_1_is_the_return_less_the_value_and_of_0_the_td_error(
    seed: int, steps: int, gamma: float
) -> None:
    r, v = np.random.default_rng(seed).normal(size=(2, steps))
    after, none = np.append(v[1:], 0.7), np.zeros(steps, bool)
    whole = gae(r, v, after, none, none, gamma=gamma, lam=1.0)[0]
    expected = discounted_returns(r, np.full(steps, gamma), 0.7)
    np.testing.assert_allclose(whole, expected - v, atol=1e-10)
    single = gae(r, v, after, none, none, gamma=gamma, lam=0.0)[0]
    np.testing.assert_allclose(single, r + gamma * after - v, atol=1e-12)


@given(seeds, st.lists(st.integers(0, 7), max_size=6), factors, factors)
def test_packed_and_ragged_trajectories_give_what_each_gives_alone(
    seed: int, lengths: list[int], gamma: float, lam: float
) -> None:
    rng = np.random.default_rng(seed)
    rewards, values = ([rng.normal(size=n) for n in lengths] for _ in range(2))
    over, last = rng.random(len(lengths)) < 0.5, rng.normal(size=len(lengths))
    ended = ["terminated" if one else "truncated" for one in over]
    ragged = gae_ragged(rewards, values, ended, last.tolist(), gamma=gamma, lam=lam)
    steps = pack(rewards)
    packed = gae_packed(
        steps.steps_N, pack(values).steps_N, steps.lengths_K, over, last, gamma=gamma, lam=lam
    )
    assert np.array_equal(np.concatenate([*ragged[0], []]), packed[0])
    for k, n in enumerate(lengths):
        ends = np.arange(n) == n - 1
        after = np.append(values[k][1:], last[k])[:n]
        alone = gae(rewards[k], values[k], after, ends & over[k], ends & ~over[k], gamma=gamma, lam=lam)
        np.testing.assert_allclose(ragged[0][k], alone[0], atol=1e-10)
        np.testing.assert_allclose(ragged[1][k], alone[1], atol=1e-10)


@given(seeds, sizes)
def test_masked_tokens_influence_nothing_whatever_they_hold_and_are_0(
    seed: int, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    r, v = rng.normal(size=(2, *shape))
    mask = rng.random(shape) < 0.6
    clean = gae_tokens(r, v, mask, gamma=0.9)
    dirty = [np.where(mask, one, rng.choice([np.nan, np.inf, -np.inf, 1e300], shape)) for one in (r, v)]
    for one, other in zip(clean, gae_tokens(*dirty, mask, gamma=0.9), strict=True):
        assert np.array_equal(one, other)
        assert not other[~mask].any()
    for row in range(shape[0]):  # a hole is passed over
        kept = mask[row]
        short = gae_tokens(
            r[row : row + 1, kept], v[row : row + 1, kept], np.ones((1, kept.sum())), gamma=0.9
        )
        np.testing.assert_allclose(clean[0][row, kept], short[0][0], atol=1e-12)


def test_the_value_after_a_termination_counts_for_nothing_even_if_it_is_no_number() -> None:
    found = gae(
        [[1.0], [2.0]], [[0.5], [0.5]], [[0.5], [math.nan]], [[0], [1]], [[0], [0]], gamma=1.0, lam=1.0
    )
    assert found[0].tolist() == [[2.5], [1.5]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_and_length_1_and_0_work(dtype: type) -> None:
    one = np.ones((1, 3), dtype)
    none = np.zeros((1, 3), bool)
    found = gae(one, one, one, none, none)
    assert [part.dtype for part in found] == [dtype, dtype]
    empty = np.zeros((0, 3), dtype)
    assert gae(empty, empty, empty, empty, empty)[0].shape == (0, 3)
    assert gae_ragged([], [], [], []) == ([], [])
    assert lambda_returns([], [], [], 0.9).tolist() == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["rewards", "values", "next_values"])
def test_a_number_that_is_not_finite_is_refused_with_its_place(name: str, bad: float) -> None:
    given = {key: np.zeros((3, 2)) for key in ("rewards", "values", "next_values")}
    given[name][1, 0] = bad
    with pytest.raises(ValueError, match=rf"{name}\[1, 0\] is {bad}"):
        gae(**given, terminated=np.zeros((3, 2)), truncated=np.zeros((3, 2)))
    alone = {key: value[:, 0] for key, value in given.items()}
    with pytest.raises(ValueError, match=rf"{name}\[1\] is {bad}"):
        gae(**alone, terminated=np.zeros(3), truncated=np.zeros(3))


def test_misuse_is_refused_by_name() -> None:
    one = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"values must have the shape \(2, 2\), got \(2, 3\)"):
        gae(one, np.zeros((2, 3)), one, one, one)
    with pytest.raises(ValueError, match=r"gamma is 1\.1"):
        gae(one, one, one, one, one, gamma=1.1)
    with pytest.raises(ValueError, match="mask must hold nothing but 0 and 1"):
        gae(one, one, one, one + 0.5, one)
    with pytest.raises(ValueError, match=r"ended\[0\] is 'done'"):
        gae_ragged([[1.0]], [[1.0]], ["done"], [0.0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="equal lengths"):
        gae_ragged([[1.0, 1.0], [1.0]], [[1.0], [1.0, 1.0]], ["truncated"] * 2, [0.0, 0.0])
    with pytest.raises(ValueError, match="rewards_N must have the shape"):
        gae_packed([1.0], [1.0], [2], [0], [0.0])


@given(seeds, st.integers(1, 10), st.sampled_from([-200.0, -5.0, 0.0, 5.0, 200.0]))
def test_vtrace_on_policy_is_gae_of_1_and_extreme_ratios_stay_finite(
    seed: int, steps: int, far: float
) -> None:
    r, v = np.random.default_rng(seed).normal(size=(2, steps))
    after, discount = np.append(v[1:], 0.2), np.full(steps, 0.9)
    none = np.zeros(steps, bool)
    expected = gae(r, v, after, none, none, gamma=0.9, lam=1.0)[0]
    np.testing.assert_allclose(vtrace(v, after, r, discount, np.zeros(steps)).errors, expected, atol=1e-10)
    for dtype in (np.float32, np.float64):
        found = vtrace(*(one.astype(dtype) for one in (v, after, r, discount, np.full(steps, far))))
        assert all(np.isfinite(one).all() and one.dtype == dtype for one in found)


def test_errors_and_the_gradient_of_vtrace_have_clips_of_their_own() -> None:
    found = vtrace([0.0], [0.0], [1.0], [0.9], [math.log(4)], clip_rho=1.0, clip_pg_rho=3.0)
    assert (found.errors.tolist(), found.pg_advantage.tolist()) == ([1.0], pytest.approx([3.0]))
    other = vtrace([0.0], [0.0], [1.0], [0.9], [math.log(4)], clip_rho=3.0, clip_pg_rho=1.0)
    assert (other.errors.tolist(), other.pg_advantage.tolist()) == (pytest.approx([3.0]), [1.0])
