import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

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


# scipy.stats.binomtest(0, n, alternative="less").proportion_ci(1 - alpha, method="exact")
@pytest.mark.parametrize(
    ("n", "alpha", "bound"),
    [
        (1, 0.05, 0.95),
        (8, 0.05, 0.312343978066),
        (8, 0.2, 0.182234566042),
        (40, 0.05, 0.0721575245055),
        (1000, 0.2, 0.00160814346208),
    ],
)
def test_the_exact_bound_is_that_of_clopper_and_pearson(n: int, alpha: float, bound: float) -> None:
    assert zero_event_bound(n, alpha) == pytest.approx(bound)


def test_all_passed_leaves_room_for_the_scenarios_not_seen() -> None:
    interval = mean_interval([1.0] * 40)
    assert (interval.low, interval.high) == (pytest.approx(1 - zero_event_bound(40, 0.05)), 1.0)


# scipy.stats.bootstrap(method="BCa", confidence_level=1 - 2 * expanded_tail(0.025, n), n_resamples=400_000)
@pytest.mark.parametrize(
    ("values", "low", "high", "slack"),
    [
        ([((i + 0.5) / 40) ** 4 for i in range(40)], 0.126482163618, 0.302721960849, 0.0026),
        ([((i + 0.5) / 280) ** 4 for i in range(280)], 0.170352885312, 0.233511390242, 0.001),
        ([0.0, 0.2, 0.4, *[0.6] * 2, *[0.8] * 7, *[1.0] * 28], 0.79, 0.945, 0.0051),
        ([0.0, 0.2, 0.4, *[0.6] * 2, *[0.8] * 7, *[1.0] * 28] * 7, 0.855, 0.908571428571, 0.0008),
    ],
    ids=["continuous-40", "continuous-280", "shares-40", "shares-280"],
)
def test_bca_agrees_with_scipy_at_the_level_of_the_expanded_tails(
    values: list[float], low: float, high: float, slack: float
) -> None:
    ours = mean_interval(values, resamples=20_000)
    assert ours.method == "bca"
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=slack)


SHARES = (0.5, 0.6, 0.975, 0.9995, 1 - 1e-6)
QUANTILES = {  # scipy.stats.t.ppf(SHARES, nu)
    0.5: (0.0, 0.397975426785, 164.55767348, 411396.462526, 102849115626.0),
    1: (0.0, 0.324919696233, 12.7062047362, 636.619248769, 318309.886174),
    2: (0.0, 0.288675134595, 4.30265272975, 31.5990545764, 707.105720516),
    3.3: (0.0, 0.274501974221, 3.02487446184, 11.1066951899, 73.790759717),
    7: (0.0, 0.263166861352, 2.36462425159, 5.40788252086, 14.2414696519),
    46.5: (0.0, 0.254801457919, 2.01231168619, 3.51240046883, 5.42907327309),
    1e5: (0.0, 0.253347777157, 1.95998770753, 3.29062403141, 4.75370471639),
}


@pytest.mark.parametrize("nu", QUANTILES)
def test_students_quantile_and_tail_are_those_of_scipy(nu: float) -> None:
    for share, wanted in zip(SHARES, QUANTILES[nu], strict=True):
        assert student_quantile(share, nu) == pytest.approx(wanted, rel=1e-7, abs=1e-9)
        assert student_tail(wanted, nu) == pytest.approx(2 * (1 - share), rel=1e-7)


# scipy.stats.t.ppf(0.975, n - 1)
@pytest.mark.parametrize(("n", "t"), [(40, 2.02269092004), (60, 2.00099537809), (400, 1.96592729592)])
def test_tails_are_expanded_by_what_students_t_and_the_smaller_variance_make_up_for(n: int, t: float) -> None:
    wider = t * math.sqrt(n / (n - 1))
    assert NormalDist().inv_cdf(1 - expanded_tail(0.025, n)) == pytest.approx(wider, abs=1e-4)


# where the p of scipy.stats.permutation_test(permutation_type="samples") for `values - theta` crosses 0.025
@pytest.mark.parametrize(
    ("n", "low", "high", "slack"),
    [
        (8, 0.06640625, 0.618489583333, 1e-6),
        (11, 0.121900900824, 0.547520247938, 1e-6),
        (25, 0.20741484375, 0.458590234375, 0.005),
    ],
)
def test_sign_flip_ends_where_scipys_permutation_test_turns(
    n: int, low: float, high: float, slack: float
) -> None:
    interval = mean_interval([round((i * 7 % n + 0.5) / n, 6) ** 2 for i in range(n)])
    assert interval.method == "sign_flip"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=slack)


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (5, 0, 5), (5, 5, 2), (4, 1, 4), (1, 1, 1)])
def test_pass_at_k_is_the_share_of_choices_with_a_pass(n: int, c: int, k: int) -> None:
    choices = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(sum(map(any, choices)) / len(choices))


def test_pass_at_k_is_unknown_with_fewer_attempts_than_k() -> None:
    assert np.isnan(pass_at_k([2, 5], [2, 1], 3)).tolist() == [True, False]
    with pytest.raises(ValueError, match="passes"):
        pass_at_k([2], [3], 1)


@reaches("settles at once", "settles later", "never settles")
@given(
    milli(-900, 900) | milli(-50, 50) | st.just(0.0),
    milli(10, 600),
    milli(0, 300) | st.just(0.0),
    st.integers(10, 300) | st.integers(10, 20),
)
def test_the_settling_size_is_the_smallest_that_settles(d: float, std: float, margin: float, n: int) -> None:
    settled = settling_n(Interval(n, d, std, None, None, "bca"), margin)
    if settled is None:
        reached("never settles")
        assert max(d + margin, -d) <= 1e-12
        return
    reached("settles at once" if settled == n + 1 else "settles later")

    def settles(size: int) -> bool:
        quantile = student_quantile(0.975, size - 1) * math.sqrt(size / (size - 1)) + 0.8416212335729143
        half = quantile * std / math.sqrt(size)
        return d - half > -margin or d + half < 0

    assert settled > n
    assert settles(settled + 1)
    assert settled == n + 1 or not settles(settled - 2)


def test_a_sample_of_which_few_values_differ_needs_more() -> None:
    assert settling_n(Interval(20, 0.0, 0.1, None, None, "sign_flip"), 0.05) == 34
    assert settling_n(Interval(20, 0.0, 0.1, None, None, "bounded"), 0.05) == 70


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
    power = NormalDist().cdf(effect / (0.4 / 10) - NormalDist().inv_cdf(0.975))
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
