"""Binomial tails against exact fractions, and at the edges."""

from fractions import Fraction
from math import comb

import pytest

from pytest_tfgrpo.numerics.binomial import binomial_tail


@pytest.mark.parametrize("n", [0, 1, 7, 50])
@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.5, 0.99, 1.0])
def test_it_is_the_sum_of_its_terms(n: int, p: float) -> None:
    of, rest = Fraction(p), 1 - Fraction(p)
    for k in {0, 1, n // 3, n // 2, max(0, n - 1), n, n + 1}:
        exact = sum((comb(n, i) * of**i * rest ** (n - i) for i in range(k, n + 1)), Fraction(0))
        assert binomial_tail(k, n, p) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("n", "p"), [(-1, 0.5), (5, -0.1), (5, 1.1), (5, float("nan"))])
def test_what_is_no_distribution_is_refused(n: int, p: float) -> None:
    with pytest.raises(ValueError, match="no binomial distribution"):
        binomial_tail(1, n, p)
