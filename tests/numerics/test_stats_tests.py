"""Sign-flip tests and Holm's correction, against what SciPy and statsmodels gave."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tfgrpo.numerics.stats import holm, one_sided_p

differences = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=10)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


# scipy.stats.permutation_test(permutation_type="samples", n_resamples=inf) of the differences less the shift
@pytest.mark.parametrize(
    ("x", "alternative", "shift", "p"),
    [
        ([3, -1], "greater", 0.0, 0.5),
        ([1, 1, 1], "greater", 0.0, 0.125),
        ([0, 0, 2, -1, 0], "greater", 0.0, 0.5),
        ([0, 0, 2, -1, 0], "less", 0.0, 0.75),
        ([5, 4, 3, 2, 1, -1], "greater", 0.0, 0.046875),
        ([5, 4, 3, 2, 1, -1], "less", 0.0, 0.984375),
        ([-1, -2, 3, -4, 5, -5, 1], "less", -2.0, 0.875),
        ([-1, -2, 3, -4, 5, -5, 1], "greater", 0.5, 0.7578125),
        ([1, 2, 3, 4, 5, -5, 1, 2, 2, -1], "greater", 0.5, 0.1787109375),
        ([1, 2, -3, 1, 2, -1, 2, 3, 1, -2, 4, 1, 1], "greater", 0.0, 0.0726318359375),
        ([2] * 13, "greater", 0.0, 0.5**13),
        ([-2] * 13, "greater", 0.0, 1.0),
    ],
)
def test_few_differences_have_the_exact_p_of_scipy(x: list[int], alternative, shift: float, p: float) -> None:
    assert one_sided_p(x, shift=shift, alternative=alternative) == pytest.approx(p, rel=1e-12)


# the same with n_resamples=200_000
@pytest.mark.parametrize(
    ("n", "greater", "less"),
    [
        (14, 0.224548339844, 0.775512695312),
        (60, 0.0582647086765, 0.941920290399),
        (203, 0.00177999110004, 0.998225008875),
    ],
)
def test_many_differences_have_the_p_of_scipy_within_the_error_of_drawing(
    n: int, greater: float, less: float
) -> None:
    x = [(i * 37 % n + 0.5) / n - 0.44 for i in range(n)]
    for alternative, theirs in (("greater", greater), ("less", less)):
        slack = 4 * math.sqrt(theirs * (1 - theirs) / 20_000)
        found = one_sided_p(x, alternative=alternative, resamples=20_000)  # type: ignore[arg-type]
        assert found == pytest.approx(theirs, abs=slack)


# the same with n_resamples=999
@pytest.mark.parametrize(("alternative", "p"), [("greater", 0.001), ("less", 1.0)])
def test_the_pattern_seen_counts_among_those_drawn(alternative, p: float) -> None:
    assert one_sided_p([1.0] * 30, alternative=alternative, resamples=999) == pytest.approx(p)


@given(st.lists(st.floats(-1, 1), max_size=40), st.sampled_from(["greater", "less"]))
@settings(max_examples=40)
def test_p_is_never_0_and_never_over_1(x: list[float], alternative) -> None:
    assert 0 < one_sided_p(x, alternative=alternative, resamples=99) <= 1


@given(differences)
@settings(max_examples=30)
def test_both_sides_together_hold_every_pattern(x: list[float]) -> None:
    assert one_sided_p(x) + one_sided_p(x, alternative="less") >= 1
    assert one_sided_p(x) == one_sided_p([-v for v in x], alternative="less")


def test_no_value_and_no_difference_are_no_evidence() -> None:
    assert one_sided_p([]) == 1.0
    assert one_sided_p([0.0] * 30) == 1.0
    assert one_sided_p([0.0] * 30, shift=-0.02, alternative="less") == 1.0


def test_a_drop_beyond_the_margin_is_found_and_one_within_it_is_not() -> None:
    noise = np.random.default_rng(3).normal(0, 0.1, 60)
    assert one_sided_p(noise - noise.mean() - 0.1, shift=-0.02, alternative="less") < 0.001
    assert one_sided_p(noise - noise.mean() - 0.01, shift=-0.02, alternative="less") > 0.5


def test_under_the_null_p_is_below_alpha_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(7)
    p = [one_sided_p(rng.normal(0, 0.4, 25), resamples=199) for _ in range(600)]
    assert 0.16 <= np.mean(np.array(p) < 0.2) <= 0.24


@pytest.mark.parametrize("x", [[[0.1]], [math.nan], [math.inf, 0.0]])
def test_what_is_no_vector_of_numbers_is_refused(x) -> None:
    with pytest.raises(ValueError, match="finite"):
        one_sided_p(x)


# statsmodels.stats.multitest.multipletests(method="holm")
@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.2], [0.2]),
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([0.04, 0.01, 0.03, 0.02], [0.06, 0.04, 0.06, 0.06]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.5, 0.9, 0.4], [1.0, 1.0, 1.0]),
        ([0.0, 1.0, 0.03], [0.0, 1.0, 0.06]),
        ([0.001, 0.5, 0.013, 0.012, 0.9, 0.012], [0.006, 1.0, 0.06, 0.06, 1.0, 0.06]),
    ],
)
def test_holm_agrees_with_statsmodels(p: list[float], adjusted: list[float]) -> None:
    assert holm(p) == pytest.approx(adjusted)


@given(p_values, st.integers(0, 12))
def test_a_test_that_was_not_made_counts_for_nothing(p: list[float], at: int) -> None:
    with_gap = [*p[:at], math.nan, *p[at:]]
    adjusted = holm(with_gap)
    assert np.isnan(adjusted[min(at, len(p))])
    assert adjusted[~np.isnan(adjusted)] == pytest.approx(holm(p))


def test_holm_of_nothing_is_nothing() -> None:
    assert holm([]).size == 0
    assert np.isnan(holm([math.nan])).all()


@pytest.mark.parametrize("p", [[1.1], [-0.1], [[0.5]]])
def test_what_is_no_probability_is_refused(p) -> None:
    with pytest.raises(ValueError, match="p values"):
        holm(p)


def test_from_eight_families_of_equal_size_on_the_family_is_the_unit() -> None:
    gains = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.5]
    for count in (8, 7):
        twice, families = np.repeat(gains[-count:], 2), np.repeat(np.arange(count), 2).tolist()
        unit = gains[-count:] if count == 8 else twice
        assert one_sided_p(twice, families) == pytest.approx(one_sided_p(unit))
