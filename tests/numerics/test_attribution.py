"""The effect of one lesson: what is recovered, what is claimed of nothing, and what is not estimated."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.samples import cover, drawn_trials, trials

from pytest_tfgrpo.numerics.attribution import (
    MIN_ARM,
    MIN_CLUSTERS,
    Trials,
    draws_for,
    estimate,
)


def test_without_covariate_the_effect_is_the_difference_of_weighted_means() -> None:
    rng = np.random.default_rng(1)
    p = np.where(np.arange(200) < 100, 0.5, 0.8)
    z = rng.random(200) < p
    y = rng.integers(0, 3, 200) / 2
    found = estimate(trials(z, y, propensity_K=p))
    with_it = np.average(y[z], weights=1 / p[z])
    without = np.average(y[~z], weights=1 / (1 - p[~z]))
    assert found.effect == pytest.approx(with_it - without)
    assert (found.included, found.left_out, found.clusters) == (z.sum(), (~z).sum(), 200)


def test_an_uneven_propensity_does_not_pass_for_an_effect() -> None:
    rng = np.random.default_rng(2)
    easy = np.arange(4000) < 2000
    p = np.where(easy, 0.9, 0.3)  # easy groups had the lesson more often
    z = rng.random(4000) < p
    y = (rng.random(4000) < np.where(easy, 0.9, 0.2)).astype(float)
    assert y[z].mean() - y[~z].mean() > 0.3
    found = estimate(trials(z, y, propensity_K=p))
    assert found.effect == pytest.approx(0.0, abs=0.06)
    assert found.low is not None
    assert found.low < 0 < (found.high or 0)


def test_a_stratum_that_happened_to_draw_the_lesson_more_often_does_not_pass_for_an_effect() -> None:
    stratum = np.arange(200) // 100
    z = np.where(stratum == 0, np.arange(200) % 100 < 85, np.arange(200) % 100 < 60)
    y = np.where(stratum == 0, 0.1, 0.85) + 0.05 * z
    assert estimate(trials(z, y, stratum_K=stratum)).effect == pytest.approx(0.05)
    apart = estimate(trials(z, y)).effect
    assert apart is not None
    assert apart < -0.1


def test_a_covariate_that_tells_the_outcome_narrows_the_interval() -> None:
    rng = np.random.default_rng(3)
    q = rng.beta(1, 1, 400)
    z = rng.random(400) < 0.8
    y = rng.binomial(4, q) / 4
    plain, adjusted = estimate(trials(z, y)), estimate(trials(z, y, x_K=q))
    assert plain.high is not None
    assert adjusted.high is not None
    assert adjusted.high - (adjusted.low or 0) < 0.8 * (plain.high - (plain.low or 0))


@pytest.mark.parametrize("effect", [-0.2, 0.0, 0.15])
def test_known_effects_are_recovered_at_realistic_n(effect: float) -> None:
    found = [estimate(drawn_trials(seed, 200, effect), draws=600) for seed in range(40)]
    known = [e for e in found if e.effect is not None]
    assert len(known) > 35
    assert np.mean([e.effect for e in known]) == pytest.approx(effect, abs=0.03)
    assert cover(known, effect) >= 0.8


@pytest.mark.parametrize("base", [0.5, 0.95])
def test_nothing_is_claimed_of_null_lessons_more_often_than_the_level(base: float) -> None:
    found = [estimate(drawn_trials(seed, 200, base=base), draws=600) for seed in range(60)]
    claims = [e.p < 0.05 for e in found if e.effect is not None]
    assert np.mean(claims) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(claims))


def test_interval_and_p_value_agree() -> None:
    for seed in range(60):
        found = estimate(drawn_trials(seed, 200, -0.15), draws=600)
        if found.low is not None and found.high is not None:
            assert (found.p < 0.05) == (found.high < 0 or found.low > 0)


def test_an_arm_without_a_failure_is_no_proof() -> None:
    """30 of 30 left-out groups solved beside 108 of 120: chance does that in 1 of 15 cases."""
    y = np.concatenate([np.zeros(12), np.ones(138)])
    found = estimate(trials(np.arange(150) < 120, y))
    error = math.sqrt(0.9 * 0.1 / 120)  # what the sandwich sees: the other arm has no variance
    assert 2 * NormalDist().cdf(-0.1 / error) < 0.001
    assert found.p > 0.02


@pytest.mark.parametrize("included", [0, 29, 171, 200])
def test_too_few_of_either_kind_give_no_estimate(included: int) -> None:
    found = estimate(trials(np.arange(200) < included, np.linspace(0, 1, 200)))
    assert found == (included, 200 - included, 200, None, None, None, found.p)
    assert math.isnan(found.p)
    assert MIN_ARM == 30


def test_too_few_scenarios_give_no_estimate() -> None:
    one = drawn_trials(1, 400, -0.4, cluster_K=np.zeros(400, dtype=np.intp))
    assert estimate(one).effect is None
    enough = drawn_trials(1, 400, -0.4, cluster_K=np.arange(400) % MIN_CLUSTERS)
    assert estimate(enough).effect == pytest.approx(-0.4, abs=0.1)


def test_no_groups_give_no_estimate() -> None:
    assert estimate(trials([], [])).effect is None


@pytest.mark.parametrize(("level", "bounds"), [(1.0, (-0.0303, 0.1157)), (0.0, (-0.1157, 0.0303))])
def test_constant_outcomes_are_bounded_not_certain(level: float, bounds: tuple[float, float]) -> None:
    found = estimate(trials(np.arange(150) < 120, np.full(150, level)))
    assert (found.effect, found.p) == (0.0, 1.0)
    assert (found.low, found.high) == pytest.approx(bounds, abs=1e-4)


def test_the_same_group_twice_in_one_scenario_is_no_more_evidence() -> None:
    once = drawn_trials(4, 8000, 0.05)
    twice = Trials(*(np.concatenate([a, a]) for a in once))
    one, two = estimate(once), estimate(twice)
    assert two.effect == pytest.approx(one.effect)
    assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_K": np.full(100, np.nan)}, "outcomes"),
        ({"y_K": np.full(100, 1.5)}, "outcomes"),
        ({"propensity_K": np.ones(100)}, "propensities"),
        ({"propensity_K": np.full(100, np.nan)}, "propensities"),
        ({"x_K": np.full(100, np.inf)}, "covariates"),
        ({"x_K": np.zeros(99)}, "one length"),
    ],
)
def test_unsound_trials_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(trials(np.arange(100) < 50, np.zeros(100), **change))


@reaches("an effect")
@example(108, 160, 0.8, 1)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(60, 300), st.sampled_from([0.3, 0.5, 0.8]), st.integers(1, 4))
def test_bounds_hold_the_effect_and_stay_in_range(seed: int, n: int, propensity: float, strata: int) -> None:
    rng = np.random.default_rng(seed)
    found = estimate(
        drawn_trials(seed, n, propensity=propensity, stratum_K=rng.integers(0, strata, n), x_K=rng.random(n)),
        draws=200,
    )
    if found.effect is not None:
        reached("an effect")
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low <= found.high <= 1
        assert found.low - 1e-9 <= found.effect <= found.high + 1e-9
        assert 0 < found.p <= 1


def test_equal_trials_give_equal_estimates() -> None:
    assert estimate(drawn_trials(5, 300)) == estimate(drawn_trials(5, 300))


@pytest.mark.parametrize("lessons", [1, 8, 200])
def test_the_smallest_p_value_survives_the_correction(lessons: int) -> None:
    assert 2 / (draws_for(lessons) + 1) * lessons < 0.05
