"""What a planned sweep shows and what settles an open comparison: by statsmodels' values and by trial."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.numerics.planning import (
    Spread,
    minimum_detectable_effect,
    planned_effect,
    settling,
    settling_n,
    spread,
    uneven_effect,
)
from pytest_tfgrpo.numerics.resampling import student_quantile
from pytest_tfgrpo.numerics.stats import Interval


def row(scores) -> SimpleNamespace:
    return SimpleNamespace(n=len(scores), sum=float(np.sum(scores)), sum_sq=float(np.sum(np.square(scores))))


def difference(pairs) -> Interval:
    d = [new.sum / new.n - old.sum / old.n for old, new in pairs]
    return Interval(len(d), float(np.mean(d)), float(np.std(d, ddof=1)), None, None, "bca")


def sweeps(seed: int, scenarios: int, rollouts: int, between: float, *, gain: float = 0.0):
    """Return pairs of tallies of normal scores: effects vary with variance `between`, rollouts with 0.09."""
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0.3, 0.7, scenarios)
    effects = gain + rng.normal(0, math.sqrt(between), scenarios)
    return [
        (row(rng.normal(level, 0.3, rollouts)), row(rng.normal(level + effect, 0.3, rollouts)))
        for level, effect in zip(levels, effects, strict=True)
    ]


# statsmodels.stats.power.NormalIndPower(ddof=0).solve_power(alpha=0.05, ratio=0, alternative="two-sided")
@pytest.mark.parametrize(
    ("n", "power", "solved"),
    [
        (8, 0.8, 0.99050739097),
        (8, 0.95, 1.27449578242),
        (42, 0.8, 0.432295167026),
        (42, 0.95, 0.556235213597),
        (1000, 0.8, 0.0885938474457),
        (1000, 0.95, 0.113994427729),
    ],
)
def test_the_detectable_effect_is_that_of_statsmodels(n: int, power: float, solved: float) -> None:
    assert minimum_detectable_effect(0.3, n, power=power) / 0.3 == pytest.approx(solved, rel=1e-4)


def test_a_plan_reckons_with_scores_as_uncertain_as_a_coin() -> None:
    assert planned_effect(42, 5) == pytest.approx(minimum_detectable_effect(math.sqrt(0.5 / 5), 42))
    assert planned_effect(8, 5) == pytest.approx(minimum_detectable_effect(math.sqrt(0.5 / 5), 8))
    assert planned_effect(7, 5) is None


def test_a_planned_effect_is_found_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    effect = planned_effect(100, 5) or 0.0
    before = rng.binomial(5, 0.5 - effect / 2, (2000, 100)) / 5
    after = rng.binomial(5, 0.5 + effect / 2, (2000, 100)) / 5
    d = after - before
    found = d.mean(axis=1) > 1.96 * d.std(axis=1, ddof=1) / 10
    assert 0.76 <= found.mean() <= 0.86


@pytest.mark.parametrize("between", [0.0, 0.04, 0.2])
@pytest.mark.parametrize("rollouts", [2, 5])
def test_the_parts_of_the_spread_are_those_that_made_it(between: float, rollouts: int) -> None:
    pairs = sweeps(1, 3000, rollouts, between)
    parts = spread(difference(pairs), pairs)
    assert parts is not None
    assert parts.within == pytest.approx(2 * 0.09, rel=0.1)
    assert parts.between == pytest.approx(between, abs=0.012)


def test_parts_make_up_the_whole_also_when_seeds_are_shared() -> None:
    rng = np.random.default_rng(2)
    shared = [rng.binomial(1, 0.5, 5) for _ in range(50)]
    pairs = [(row(scores), row(np.append(scores[:4], 1))) for scores in shared]
    parts = spread(difference(pairs), pairs)
    assert parts is not None
    assert parts.between == 0.0
    assert parts.std(5) == pytest.approx(difference(pairs).std)


def test_single_rollouts_tell_nothing_of_their_own_spread() -> None:
    pairs = [(row([0.0]), row([1.0])), (row([1.0]), row([1.0]))]
    assert spread(difference(pairs), pairs) is None
    assert spread(Interval(1, 1.0, math.nan, None, None, "none"), [(row([0, 1]), row([1, 1]))]) is None


open_questions = st.tuples(
    st.integers(-80, 80).map(lambda i: i / 1000),
    st.integers(1, 200).map(lambda i: i / 1000),
    st.integers(1, 400).map(lambda i: i / 1000),
    st.integers(10, 80),
    st.integers(1, 10),
)


@reaches("more scenarios", "more rollouts", "not by rollouts")
@given(open_questions)
def test_each_way_settles_and_a_little_less_does_not(drawn) -> None:
    mean, between, within, n, rollouts = drawn
    parts = Spread(between, within)
    margin = 0.05
    ways = settling(Interval(n, mean, parts.std(rollouts), None, None, "bca"), parts, rollouts, margin)

    def settles(scenarios: int, each: float, slack: float = 0.005) -> bool:  # the expansion's error at nu = 7
        nu = max(scenarios, 8) - 1
        quantile = student_quantile(0.975, nu) * math.sqrt((nu + 1) / nu) + 0.8416212335729143
        half = (1 - slack) * quantile * parts.std(each) / math.sqrt(scenarios)
        return mean - half > -margin or mean + half < 0

    reached("more rollouts" if ways.same_scenarios is not None else "not by rollouts")
    for scenarios, each in ways.options:
        reached("more scenarios")
        assert settles(scenarios + 1, each)
        assert scenarios == n + 1 or scenarios <= 9 or not settles(scenarios - 2, each, -0.005)
        assert scenarios > n
    if ways.same_scenarios is not None:
        assert settles(n, ways.same_scenarios + 0.01)
        assert ways.same_scenarios == 1 or not settles(n, ways.same_scenarios - 1.01, -0.005)
    else:
        assert not settles(n, 99, -0.005)


def test_rollouts_alone_do_not_settle_what_differs_between_scenarios() -> None:
    pairs = sweeps(3, 40, 5, 0.09, gain=0.02)
    parts = spread(difference(pairs), pairs)
    assert parts is not None
    ways = settling(difference(pairs), parts, 5, 0.05)
    assert ways.same_scenarios is None
    (first, few), (second, many) = ways.options
    assert first > second > 40
    assert (few, many) == (5, 20)


def test_rollouts_alone_settle_what_is_noise() -> None:
    pairs = sweeps(4, 40, 2, 0.0)
    parts = spread(difference(pairs), pairs)
    assert parts is not None
    assert 2 < (settling(difference(pairs), parts, 2, 0.05).same_scenarios or 0) < 40


def test_nothing_settles_a_mean_on_the_edge_or_a_sample_without_spread() -> None:
    edge = Interval(20, 0.0, 0.1, None, None, "bca")
    assert settling(edge, Spread(0.005, 0.025), 5, 0.0) == ((), None)
    flat = Interval(20, 0.0, 0.0, None, None, "exact")
    assert settling(flat, Spread(0.0, 0.0), 5, 0.05) == ((), None)


def test_what_is_on_a_limit_is_within_it() -> None:
    assert uneven_effect(0.1, 0.5, 8, 5, 8.0) is not None
    assert uneven_effect(0.1, 0.5, 8, 5, 7.9) is None
    pairs = sweeps(0, 2, 5, 0.01)
    assert spread(difference(pairs), pairs) is not None
    open_one = Interval(10, 0.0, 1.0, None, None, "bca")
    for rollouts, options in ((25, [25, 100]), (26, [26])):
        found = settling(open_one, Spread(0.0, 25.0), rollouts, 0.1).options
        assert [each for _, each in found] == options
    alike = SimpleNamespace(n=80, mean=0.0, std=0.0, families=8.0)  # ten scenarios a family
    assert settling_n(alike, 0.05) == math.floor(10 * math.log(0.025) / math.log(0.95)) + 1


@pytest.mark.parametrize(
    ("within", "headroom", "families"), [(0.1, 0.5, 20.0), (0.01, 0.9, 8.0), (0.2, 1.0, 50.0)]
)
def test_families_that_gain_all_or_nothing_vary_by_what_is_gained(
    within: float, headroom: float, families: float
) -> None:
    found = uneven_effect(within, headroom, 60, 5, families)
    alike = minimum_detectable_effect(Spread(0.0, 2 * within).std(5), 60)
    assert found is not None
    assert alike < found < headroom
    per_family = (1.959964 + 0.841621) ** 2 / families
    assert found**2 == pytest.approx(per_family * found * (headroom - found) + alike**2, rel=1e-5)
    assert uneven_effect(within, alike / 2, 60, 5, families) == alike
