"""How far values of a family agree: against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_tfgrpo.numerics.agreement import intraclass_correlation


def by_anova(groups: list[list[float]]) -> float:
    """Return the intraclass correlation from SciPy's F ratio."""
    sizes = [len(group) for group in groups]
    n, k = sum(sizes), len(groups)
    n0 = (n - sum(size * size for size in sizes) / n) / (k - 1)
    f = stats.f_oneway(*groups).statistic
    return float((f - 1) / (f - 1 + n0))


def unzipped(groups: list[list[float]]) -> tuple[list[float], list[int]]:
    return [x for group in groups for x in group], [n for n, group in enumerate(groups) for _ in group]


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 6), min_size=2, max_size=12).filter(lambda s: sum(s) > len(s)),
)
def test_the_intraclass_correlation_is_that_of_an_analysis_of_variance(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    groups = [list(rng.normal(rng.normal(), 1.0, size)) for size in sizes]
    found = intraclass_correlation(*unzipped(groups))
    assert found == pytest.approx(by_anova(groups), abs=1e-9)
    assert found is not None
    assert found <= 1.0 + 1e-12
