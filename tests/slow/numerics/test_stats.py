"""Bounds and intervals, against SciPy, and how often they hold the truth."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pytest_tfgrpo.numerics.resampling import expanded_tail, student_quantile, student_tail
from pytest_tfgrpo.numerics.stats import mean_interval, zero_event_bound


@pytest.mark.parametrize("n", [1, 8, 40, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_exact_bound_is_that_of_clopper_and_pearson(n: int, alpha: float) -> None:
    test = scipy.stats.binomtest(0, n, alternative="less")
    expected = test.proportion_ci(confidence_level=1 - alpha, method="exact").high
    assert zero_event_bound(n, alpha) == pytest.approx(expected)


@pytest.mark.parametrize("draw", ["continuous", "shares"])
@pytest.mark.parametrize("n", [40, 300])
def test_bca_agrees_with_scipy_at_the_level_of_the_expanded_tails(draw: str, n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.beta(4, 1, n) if draw == "continuous" else rng.binomial(5, 0.8, n) / 5
    ours = mean_interval(values, resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * expanded_tail(0.025, n),
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert ours.method == "bca"
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width)


@pytest.mark.parametrize("nu", [0.5, 1, 2, 3.3, 7, 46.5, 1e5])
@pytest.mark.parametrize("share", [0.5, 0.6, 0.975, 0.9995, 1 - 1e-6])
def test_students_quantile_and_tail_are_those_of_scipy(nu: float, share: float) -> None:
    wanted = scipy.stats.t.ppf(share, nu)
    assert student_quantile(share, nu) == pytest.approx(wanted, rel=1e-7, abs=1e-9)
    assert student_tail(wanted, nu) == pytest.approx(2 * (1 - share), rel=1e-7)


@pytest.mark.parametrize("n", [40, 60, 400])
def test_tails_are_expanded_by_what_students_t_and_the_smaller_variance_make_up_for(n: int) -> None:
    wider = scipy.stats.t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1))
    assert scipy.stats.norm.ppf(1 - expanded_tail(0.025, n)) == pytest.approx(wider, abs=1e-4)


@pytest.mark.parametrize("n", [8, 11, 25])
def test_sign_flip_ends_where_scipys_permutation_test_turns(n: int) -> None:
    values = np.random.default_rng(n).beta(2, 2, n)
    interval = mean_interval(values)
    assert interval.low is not None
    assert interval.high is not None

    def p_value(theta: float, alternative: str) -> float:
        return float(
            scipy.stats.permutation_test(
                (values - theta,),
                np.mean,
                permutation_type="samples",
                alternative=alternative,
                n_resamples=20_000,
                rng=np.random.default_rng(0),
            ).pvalue
        )

    slack = 0.002 if n > 13 else 0.0
    assert p_value(interval.low - 1e-9, "greater") <= 0.025 + slack
    assert p_value(interval.high + 1e-9, "less") <= 0.025 + slack
    assert p_value(interval.low + 1e-9, "greater") >= 0.025 - slack
    assert p_value(interval.high - 1e-9, "less") >= 0.025 - slack


@pytest.mark.parametrize(
    ("n", "mean", "draw", "nominal"),
    [
        (60, 2 / 3, lambda rng, n: rng.beta(2, 1, n), (0.92, 0.98)),
        (60, 0.5, lambda rng, n: rng.binomial(5, 0.5, n) / 5, (0.92, 0.98)),
        (20, 2 / 3, lambda rng, n: rng.beta(2, 1, n), (0.92, 0.98)),
        (30, 0.99, lambda rng, n: (rng.random(n) >= 0.01).astype(float), (0.92, 1.0)),
    ],
    ids=["bca", "bca-of-shares", "sign-flip", "rare-failures"],
)
def test_intervals_cover_the_truth_as_often_as_they_say(
    n: int, mean: float, draw: Callable[..., Any], nominal: tuple[float, float]
) -> None:
    covered = 0
    for seed in range(400):
        interval = mean_interval(draw(np.random.default_rng(seed), n), resamples=999, seed=seed)
        covered += interval.low <= mean <= interval.high
    assert nominal[0] <= covered / 400 <= nominal[1]
