import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.rl.normalise import whiten


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.sampled_from([np.float32, np.float64]))
def test_the_mean_is_0_and_the_deviation_1_whatever_is_masked(seed: int, size: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 2, size).astype(dtype)
    mask = np.arange(size) < max(2, size // 2)
    found = whiten(np.where(mask, x, np.nan), mask, eps=0.0)
    assert found.dtype == dtype
    assert found[mask].mean() == pytest.approx(0, abs=1e-5)
    assert found[mask].std(ddof=1) == pytest.approx(1, rel=1e-5)
    assert not found[~mask].any()
    np.testing.assert_allclose(whiten(x[::-1]), whiten(x)[::-1], rtol=1e-5)


@given(st.floats(-1e30, 1e30), st.integers(2, 50), st.sampled_from([np.float32, np.float64]))
def test_equal_values_give_exactly_0(value: float, size: int, dtype: type) -> None:
    x = np.full(size, value, dtype)
    assert not whiten(x).any()
    assert np.array_equal(whiten(x, shift_mean=False), x)


def test_one_value_is_an_error_or_kept() -> None:
    with pytest.raises(ValueError, match="x has 1 values that are not masked"):
        whiten([3.0])
    assert whiten([3.0], single="keep").tolist() == [3.0]
    assert whiten([3.0, 4.0], [0, 0], single="keep").tolist() == [0, 0]


def test_decision_27_has_the_population_s_variance_and_eps_in_the_root() -> None:
    found = whiten([1.0, 2.0, 3.0], ddof=0)
    edge = 1 / math.sqrt(2 / 3 + 1e-8)
    np.testing.assert_allclose(found, [-edge, 0, edge], rtol=1e-12)


def test_a_number_that_is_not_finite_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"x\[0, 1\] is inf"):
        whiten([[1.0, math.inf], [2.0, 3.0]])
