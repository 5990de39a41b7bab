"""Binomial tails of many trials against scipy's."""

import pytest
from scipy.stats import binom

from pytest_tfgrpo.numerics.binomial import binomial_tail


@pytest.mark.parametrize("n", [50, 5000])
@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.5, 0.99, 1.0])
def test_it_is_that_of_scipy(n: int, p: float) -> None:
    for k in {0, 1, n // 3, n // 2, n - 1, n, n + 1}:
        assert binomial_tail(k, n, p) == pytest.approx(binom.sf(k - 1, n, p), rel=1e-8, abs=1e-300)
