import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.advantages import group_advantage, informative, relative_rank

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
        ([math.inf], [0], "finite"),
    ],
)
def test_misshapen_input_is_refused(values, groups, complaint: str) -> None:
    for function in (relative_rank, group_advantage, informative):
        with pytest.raises(ValueError, match=complaint):
            function(values, groups)
