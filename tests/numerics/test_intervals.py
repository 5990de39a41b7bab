"""Intervals where few values differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.stats import (
    mean_interval,
    paired_interval,
    rare_event_bound,
    two_sided_p,
    zero_event_bound,
)


def flips(n: int, down: int, up: int = 0) -> np.ndarray:
    return np.array([-1.0] * down + [1.0] * up + [0.0] * (n - down - up))


@pytest.mark.parametrize("n", [8, 15, 40, 60, 400])
@pytest.mark.parametrize("down", [1, 2])
def test_one_flip_or_two_leave_room_on_both_sides(n: int, down: int) -> None:
    found = mean_interval(flips(n, down), support=(-1, 1))
    assert found.method == "bounded"
    assert found.low < found.mean < 0 < found.high
    # As wide as without any flip, or wider, and no wider than twice that and the flips themselves.
    bound = zero_event_bound(n, 0.05)
    assert 0.5 * bound < found.high - found.mean
    assert found.high - found.low < 4 * bound + 2 * down / n


def test_a_gain_in_few_scenarios_is_shown_once_enough_of_them_gain() -> None:
    low = [mean_interval(flips(60, 0, up), support=(-1, 1)).low for up in range(10)]
    assert low == sorted(low)
    assert low[2] < 0 < low[6]


# scipy.stats.beta.ppf(0.025, passed, failed + 0.5), scipy.stats.beta.ppf(0.975, passed + 0.5, failed)
@pytest.mark.parametrize(
    ("n", "passed", "low", "high"),
    [
        (12, 9, 0.453410345046, 0.94258591593),
        (25, 20, 0.609037429479, 0.930217411521),
        (40, 37, 0.810986572606, 0.984054910148),
        (40, 39, 0.88771947067, 0.999359248205),
        (60, 4, 0.0186195110057, 0.151943061148),
        (400, 395, 0.972786822882, 0.995924053975),
    ],
)
def test_with_values_of_0_and_1_the_bounds_are_those_with_half_a_value_added_on_their_side(
    n: int, passed: int, low: float, high: float
) -> None:
    found = mean_interval([1.0] * passed + [0.0] * (n - passed), resamples=40_000)
    assert found.method == "bounded"
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02 * (high - low))


# statsmodels.stats.proportion.proportion_confint(0, n, 0.1, method="beta")
@pytest.mark.parametrize(("n", "bound"), [(8, 0.312343978066), (40, 0.0721575245055), (400, 0.0074613555288)])
def test_the_bound_without_an_event_is_that_of_statsmodels(n: int, bound: float) -> None:
    assert zero_event_bound(n, 0.05) == pytest.approx(bound)


few = st.lists(st.floats(-1, 1), min_size=1, max_size=4)


@given(few, st.sampled_from([-1.0, -0.2, 0.0, 1.0]), st.integers(10, 60))
@hypothesis_settings(max_examples=40)
def test_a_sample_of_few_differences_holds_its_mean_within_the_support(
    others: list[float], most: float, n: int
) -> None:
    found = mean_interval([most] * n + others, support=(-1, 1), resamples=499)
    assert found.low is not None
    assert found.high is not None
    assert -1 - 1e-9 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 1 + 1e-9


@given(few, st.integers(10, 40))
@hypothesis_settings(max_examples=20)
def test_turning_the_differences_around_turns_the_interval_around(others: list[float], n: int) -> None:
    values = np.array([0.0] * n + others)
    there = mean_interval(values, support=(-1, 1), resamples=20_000)
    back = mean_interval(-values, support=(-1, 1), resamples=20_000)
    slack = 0.05 * (there.high - there.low)
    assert (back.low, back.high) == (
        pytest.approx(-there.high, abs=slack),
        pytest.approx(-there.low, abs=slack),
    )


def test_differences_that_are_rounding_are_none() -> None:
    before = np.array([0.1, 0.2, 0.3] * 20)
    assert paired_interval(before, before + 0.2 - 0.1).method == "exact"
    after = before + 0.2 - 0.1
    after[0] += 0.2
    assert paired_interval(before, after).method == "bounded"


# scipy.stats.permutation_test(permutation_type="samples", n_resamples=inf)
@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([3, -1, 2, 0, -2, 4, 1, 1, -3, 4, 2], 0.224609375),
        ([-3, 1, -2, 0, 2, -4, -1, -1, 3, -4, -2], 0.224609375),
        ([1, -1, 0, 0], 1.0),
        ([2, 2, 2], 0.25),
        ([0] * 11, 1.0),
    ],
)
def test_a_two_sided_p_is_that_of_scipy(values: list[int], p: float) -> None:
    assert two_sided_p(values) == pytest.approx(p)


# statsmodels.stats.proportion.proportion_confint(events, n, alpha=0.04, method="beta")
@pytest.mark.parametrize(
    ("events", "n", "bound"),
    [
        (0, 8, 0.386762436483),
        (1, 40, 0.137335193577),
        (4, 100, 0.102367177062),
        (9, 2000, 0.00873628781696),
        (9, 10, 0.997981768642),
        (5, 5, 1.0),
    ],
)
def test_the_bound_of_a_rare_event_is_that_of_clopper_and_pearson(events: int, n: int, bound: float) -> None:
    found = rare_event_bound(events, n, 0.02)
    assert found == pytest.approx(bound, abs=2e-6)
    if not events:
        assert found == pytest.approx(zero_event_bound(n, 0.02), abs=2e-6)
