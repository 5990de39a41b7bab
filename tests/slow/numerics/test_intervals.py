"""Intervals against SciPy and statsmodels, and how often they hold the truth."""

from types import ModuleType

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.proportion import proportion_confint
from support import benchmark

from pytest_tfgrpo.numerics.stats import mean_interval, rare_event_bound, two_sided_p, zero_event_bound


@pytest.fixture(scope="module")
def grid() -> ModuleType:
    """Import the grid of the coverage simulation."""
    return benchmark("intervals")


@pytest.mark.parametrize(("n", "passed"), [(12, 9), (25, 20), (40, 37), (40, 39), (60, 4), (400, 395)])
def test_with_values_of_0_and_1_the_bounds_lie_between_those_of_jeffreys_and_the_exact_ones(
    n: int, passed: int
) -> None:
    found = mean_interval([1.0] * passed + [0.0] * (n - passed), resamples=40_000)
    assert found.method == "bounded"
    beta = scipy.stats.beta
    exact = (beta.ppf(0.025, passed, n - passed + 0.5), beta.ppf(0.975, passed + 0.5, n - passed))
    assert (found.low, found.high) == pytest.approx(exact, abs=0.04 * (exact[1] - exact[0]))
    outer = proportion_confint(passed, n, method="beta")
    inner = proportion_confint(passed, n, method="jeffreys")
    assert outer[0] < exact[0] < inner[0] < inner[1] < exact[1] < outer[1]


@pytest.mark.parametrize("n", [8, 40, 400])
def test_the_bound_without_an_event_is_that_of_statsmodels(n: int) -> None:
    assert zero_event_bound(n, 0.05) == pytest.approx(proportion_confint(0, n, 0.1, method="beta")[1])


def test_a_two_sided_p_is_that_of_scipy() -> None:
    values = np.random.default_rng(4).integers(-3, 5, 11).astype(float)
    expected = scipy.stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert two_sided_p(values) == pytest.approx(expected)
    assert two_sided_p(np.zeros(11)) == 1.0


def test_the_grid_of_the_simulation_knows_its_truth(grid: ModuleType) -> None:
    for name, kind in grid.KINDS.items():
        values = kind.draw(np.random.default_rng(1), 400_000)
        assert values.mean() == pytest.approx(kind.mean, abs=4 * values.std() / 400_000**0.5), name
        assert kind.support[0] <= values.min() <= values.max() <= kind.support[1], name


@pytest.mark.parametrize(
    ("kind", "n", "least", "most"),
    [
        ("shares of 5 rollouts", 40, 0.92, 0.98),
        ("skewed", 60, 0.91, 0.98),
        ("3 of 10 touched", 40, 0.92, 0.985),
        ("flips, 1.4 % up, 0.6 % down", 60, 0.94, 1.0),
        ("flips, 1 % up, 1 % down", 100, 0.94, 1.0),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    grid: ModuleType, kind: str, n: int, least: float, most: float
) -> None:
    cell = grid.cover(kind, n, 300, 999)
    assert least <= cell.covered <= most
    assert max(cell.above, cell.below) <= 0.06


@pytest.mark.parametrize(("events", "n"), [(0, 8), (1, 40), (4, 100), (9, 2000), (9, 10), (5, 5)])
def test_the_bound_of_a_rare_event_is_that_of_clopper_and_pearson(events: int, n: int) -> None:
    found = rare_event_bound(events, n, 0.02)
    assert found == pytest.approx(proportion_confint(events, n, alpha=0.04, method="beta")[1], abs=2e-6)
    if not events:
        assert found == pytest.approx(zero_event_bound(n, 0.02), abs=2e-6)
