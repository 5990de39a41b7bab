"""Sign-flip tests and Holm's correction, against SciPy and statsmodels."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from support.peers import statsmodels_holm

from pytest_tfgrpo.numerics.stats import holm, one_sided_p

differences = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=10)
"""Whole numbers, whose sums tie exactly: SciPy takes a tie of rounded sums for a difference."""
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def scipys_p(x_K: list[float], alternative: str, resamples: float = np.inf) -> float:
    found = scipy.stats.permutation_test(
        (np.asarray(x_K),),
        np.mean,
        permutation_type="samples",
        alternative=alternative,
        n_resamples=resamples,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


@given(differences, st.sampled_from(["greater", "less"]), st.sampled_from([0.0, -2.0, 0.5]))
@settings(max_examples=30)
def test_few_differences_have_the_exact_p_of_scipy(x: list[float], alternative, shift: float) -> None:
    ours = one_sided_p(x, shift=shift, alternative=alternative)
    assert ours == pytest.approx(scipys_p([v - shift for v in x], alternative))


@pytest.mark.parametrize("n", [14, 60, 203])
@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_many_differences_have_the_p_of_scipy_within_the_error_of_drawing(n: int, alternative) -> None:
    x = np.random.default_rng(n).normal(0.05, 0.4, n)
    theirs = scipys_p(list(x), alternative, 20_000)
    assert one_sided_p(x, alternative=alternative, resamples=20_000) == pytest.approx(theirs, abs=0.012)


@given(st.lists(st.floats(-1, 1), max_size=40), st.sampled_from(["greater", "less"]))
@settings(max_examples=40)
def test_p_is_never_0_and_never_over_1(x: list[float], alternative) -> None:
    assert 0 < one_sided_p(x, alternative=alternative, resamples=99) <= 1


@given(differences)
@settings(max_examples=30)
def test_both_sides_together_hold_every_pattern(x: list[float]) -> None:
    assert one_sided_p(x) + one_sided_p(x, alternative="less") >= 1
    assert one_sided_p(x) == one_sided_p([-v for v in x], alternative="less")


def test_no_value_and_no_difference_are_no_evidence() -> None:
    assert one_sided_p([]) == 1.0
    assert one_sided_p([0.0] * 30) == 1.0
    assert one_sided_p([0.0] * 30, shift=-0.02, alternative="less") == 1.0


def test_a_drop_beyond_the_margin_is_found_and_one_within_it_is_not() -> None:
    noise = np.random.default_rng(3).normal(0, 0.1, 60)
    assert one_sided_p(noise - noise.mean() - 0.1, shift=-0.02, alternative="less") < 0.001
    assert one_sided_p(noise - noise.mean() - 0.01, shift=-0.02, alternative="less") > 0.5


def test_under_the_null_p_is_below_alpha_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(7)
    p = [one_sided_p(rng.normal(0, 0.4, 25), resamples=199) for _ in range(600)]
    assert 0.16 <= np.mean(np.array(p) < 0.2) <= 0.24


@pytest.mark.parametrize("x", [[[0.1]], [math.nan], [math.inf, 0.0]])
def test_what_is_no_vector_of_numbers_is_refused(x) -> None:
    with pytest.raises(ValueError, match="finite"):
        one_sided_p(x)


@given(p_values)
def test_holm_agrees_with_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(statsmodels_holm(p))


@given(p_values, st.integers(0, 12))
def test_a_test_that_was_not_made_counts_for_nothing(p: list[float], at: int) -> None:
    with_gap = [*p[:at], math.nan, *p[at:]]
    adjusted = holm(with_gap)
    assert np.isnan(adjusted[min(at, len(p))])
    assert adjusted[~np.isnan(adjusted)] == pytest.approx(holm(p))


def test_holm_of_nothing_is_nothing() -> None:
    assert holm([]).size == 0
    assert np.isnan(holm([math.nan])).all()


@pytest.mark.parametrize("p", [[1.1], [-0.1], [[0.5]]])
def test_what_is_no_probability_is_refused(p) -> None:
    with pytest.raises(ValueError, match="p values"):
        holm(p)
