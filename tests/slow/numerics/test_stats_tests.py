"""Sign-flip tests and Holm's correction, against SciPy and statsmodels."""

from unittest import mock

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

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


def statsmodels_holm(p: list[float]) -> np.ndarray:
    """Return the adjusted p values of statsmodels, without the garbage collection that it makes each time."""
    with mock.patch("gc.collect"):
        return np.asarray(multipletests(p, method="holm")[1])


@given(p_values)
def test_holm_agrees_with_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(statsmodels_holm(p))
