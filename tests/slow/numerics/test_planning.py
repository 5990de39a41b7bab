"""What a planned sweep shows, against statsmodels."""

import pytest
import statsmodels.stats.power

from pytest_tfgrpo.numerics.planning import minimum_detectable_effect


@pytest.mark.parametrize("n", [8, 42, 1000])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_the_detectable_effect_is_that_of_statsmodels(n: int, power: float) -> None:
    solved = statsmodels.stats.power.NormalIndPower(ddof=0).solve_power(
        nobs1=n, alpha=0.05, power=power, ratio=0, alternative="two-sided"
    )
    assert minimum_detectable_effect(0.3, n, power=power) / 0.3 == pytest.approx(solved, rel=1e-4)
