import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.planning import minimum_detectable_effect, settling_n
from pytest_tfgrpo.numerics.resampling import expanded_tail, student_quantile, student_tail
from pytest_tfgrpo.numerics.stats import (
    Interval,
    mean_interval,
    mean_of,
    paired_interval,
    pass_at_k,
    zero_event_bound,
)


def milli(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda i: i / 1000)


samples = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), min_size=8, max_size=70)


def test_the_method_follows_from_the_sample() -> None:
    rng = np.random.default_rng(1)
    assert [mean_interval(rng.random(n)).method for n in (0, 7, 8, 39, 40)] == [
        "none",
        "none",
        "sign_flip",
        "sign_flip",
        "bca",
    ]
    assert mean_interval([0.5] * 7).method == "none"
    assert mean_interval([0.5] * 8).method == "exact"


def test_under_8_scenarios_only_the_mean_is_told() -> None:
    interval = mean_interval([0.2, 0.4])
    assert (interval.n, interval.mean, interval.low, interval.high) == (2, pytest.approx(0.3), None, None)
    assert math.isnan(mean_interval([]).mean)


@given(samples)
@settings(max_examples=40)
def test_an_interval_holds_its_mean_and_stays_in_the_support(values: list[float]) -> None:
    interval = mean_interval(values, resamples=999)
    assert interval.low is not None
    assert interval.high is not None
    assert -1e-9 <= interval.low <= interval.mean + 1e-9
    assert interval.mean - 1e-9 <= interval.high <= 1 + 1e-9


@given(samples, st.integers(0, 5))
@settings(max_examples=20)
def test_equal_seeds_give_equal_intervals(values: list[float], seed: int) -> None:
    assert mean_interval(values, seed=seed, resamples=999) == mean_interval(values, seed=seed, resamples=999)


@given(samples)
@settings(max_examples=20)
def test_a_sample_paired_with_itself_differs_by_0_within_the_exact_bound(values: list[float]) -> None:
    interval = paired_interval(values, values)
    bound = zero_event_bound(len(values), 0.05)
    assert (interval.mean, interval.std, interval.method) == (0, 0, "exact")
    assert (interval.low, interval.high) == pytest.approx((-bound, bound))


@pytest.mark.parametrize("n", [1, 8, 40, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_exact_bound_is_that_of_clopper_and_pearson(n: int, alpha: float) -> None:
    test = scipy.stats.binomtest(0, n, alternative="less")
    expected = test.proportion_ci(confidence_level=1 - alpha, method="exact").high
    assert zero_event_bound(n, alpha) == pytest.approx(expected)


def test_all_passed_leaves_room_for_the_scenarios_not_seen() -> None:
    interval = mean_interval([1.0] * 40)
    assert (interval.low, interval.high) == (pytest.approx(1 - zero_event_bound(40, 0.05)), 1.0)


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


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (5, 0, 5), (5, 5, 2), (4, 1, 4), (1, 1, 1)])
def test_pass_at_k_is_the_share_of_choices_with_a_pass(n: int, c: int, k: int) -> None:
    choices = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(sum(map(any, choices)) / len(choices))


def test_pass_at_k_is_unknown_with_fewer_attempts_than_k() -> None:
    assert np.isnan(pass_at_k([2, 5], [2, 1], 3)).tolist() == [True, False]
    with pytest.raises(ValueError, match="passes"):
        pass_at_k([2], [3], 1)


@given(milli(-900, 900), milli(10, 600), milli(0, 300), st.integers(10, 300))
def test_the_settling_size_is_the_smallest_that_settles(d: float, std: float, margin: float, n: int) -> None:
    settled = settling_n(Interval(n, d, std, None, None, "bca"), margin)
    if settled is None:
        assert max(d + margin, -d) <= 1e-12
        return

    def settles(size: int) -> bool:
        half = 1.959963984540054 * std / math.sqrt(size)
        return d - half > -margin or d + half < 0

    assert settled > n
    assert settles(settled + 1)
    assert settled == n + 1 or not settles(settled - 1)


@pytest.mark.parametrize("d", [0.0, -1.0, -0.04, 0.5, 1.0])
def test_the_settling_size_without_variance_follows_the_exact_bound(d: float) -> None:
    flat = mean_interval([d] * 8, support=(-1, 1))
    settled = settling_n(flat, 0.05)
    assert settled is not None
    at = mean_interval([d] * settled, support=(-1, 1), level=0.975)  # for each bound by itself
    assert at.low > -0.05 or at.high < 0
    before = mean_interval([d] * (settled - 1), support=(-1, 1), level=0.975)
    assert settled == 9 or not (before.low > -0.05 or before.high < 0)


def test_nothing_settles_a_mean_on_the_edge() -> None:
    assert settling_n(Interval(20, 0.0, 0.1, -0.1, 0.1, "bca"), 0.0) is None
    assert settling_n(mean_interval([], support=(-1, 1)), 0.05) is None


def test_the_detectable_effect_is_found_with_the_stated_power() -> None:
    effect = minimum_detectable_effect(0.4, 100)
    power = 1 - scipy.stats.norm.cdf(scipy.stats.norm.ppf(0.975) - effect / (0.4 / 10))
    assert power == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "complaint"), [([[0.5]], "vector"), ([1.5], "lie in"), ([math.nan], "lie in")]
)
def test_values_outside_the_support_are_refused(values, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        mean_interval(values)


def test_pairs_must_match() -> None:
    with pytest.raises(ValueError, match="one length"):
        paired_interval([0.5], [0.5, 0.5])


@given(st.lists(st.floats(0, 1), max_size=7))
def test_few_values_have_the_figures_that_numpy_gives_them(values: list[float]) -> None:
    without, with_numpy = mean_interval(values), mean_interval(np.array(values))
    assert repr(without) == repr(with_numpy)
    if values:
        assert mean_of(values) == float(np.mean(values))
