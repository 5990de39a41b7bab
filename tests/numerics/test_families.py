"""Intervals and tests where scenarios of a family go together: the family is the unit (decision 8)."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.numerics.stats import mean_interval, one_sided_p, paired_interval, two_sided_p

VALUES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), min_size=8, max_size=60)


@given(VALUES)
def test_scenarios_that_are_their_own_families_change_nothing(values: list[float]) -> None:
    own = list(range(len(values)))
    assert mean_interval(values, own, support=(-1, 1)) == mean_interval(values, support=(-1, 1))
    assert two_sided_p(values, own) == two_sided_p(values)


@reaches("families", "just these scenarios", "an interval")
@given(VALUES, st.integers(2, 7) | st.integers(8, 20))
def test_the_interval_holds_the_mean_and_lies_in_the_support(values: list[float], families: int) -> None:
    found = mean_interval(values, [n % families for n in range(len(values))], support=(-1, 1))
    assert found.mean == pytest.approx(math.fsum(values) / len(values))
    reached("just these scenarios" if found.just_these else "families", families < len(values))
    if found.low is not None and found.high is not None:
        reached("an interval")
        assert -1 - 1e-9 <= found.low <= found.mean + 1e-9
        assert found.mean - 1e-9 <= found.high <= 1 + 1e-9


def test_under_8_effective_families_the_interval_is_of_just_these_scenarios() -> None:
    values = list(np.random.default_rng(1).random(96))
    even, few = [n % 8 for n in range(96)], [n % 6 for n in range(96)]
    assert mean_interval(values, few) == mean_interval(values)._replace(families=6.0)
    assert [mean_interval(values, families).just_these for families in (even, few, ())] == [
        False,
        True,
        False,
    ]
    assert one_sided_p(values, few, shift=0.5) == one_sided_p(values, shift=0.5)
    assert mean_interval(values[:7], [0] * 7).just_these is False
    one_large = [0] * 66 + list(range(1, 31))
    assert mean_interval(values, one_large).families == pytest.approx(96**2 / (66**2 + 30))
    assert mean_interval(values, one_large).just_these


def test_the_method_goes_by_effective_families() -> None:
    values = list(np.random.default_rng(1).random(200))
    by_count = {
        count: mean_interval(values, [n % count for n in range(200)]).method for count in (10, 39, 50)
    }
    assert by_count == {10: "sign_flip", 39: "sign_flip", 50: "bca"}
    alike, of_each = mean_interval([0.5] * 40, [n // 2 for n in range(40)]), mean_interval([0.5] * 20)
    assert (alike.method, alike.low, alike.high) == ("exact", of_each.low, of_each.high)
    one_differs = [1.0 if n < 4 else 0.0 for n in range(40)]
    assert mean_interval(one_differs, [n // 4 for n in range(40)]).method == "bounded"


def test_few_values_that_differ_say_as_much_in_families_of_four_as_alone() -> None:
    values = [1.0] + [0.0] * 9
    alone, of_four = mean_interval(values), mean_interval(values * 4, [*range(10)] * 4)
    assert alone.method == of_four.method == "bounded"
    assert of_four.high == pytest.approx(alone.high, abs=0.015)


def test_the_standard_error_is_that_of_the_ratio_over_families() -> None:
    values = [1.0, 1.0, 0.0, 0.5, 0.25, 0.25] * 6
    families = [place + 3 * n for n in range(6) for place in (0, 0, 0, 1, 1, 2)]
    residuals = [2.0 - 3 * 0.5, 0.75 - 2 * 0.5, 0.25 - 0.5] * 6
    error = math.sqrt(18 / 17 * sum(r * r for r in residuals)) / 36
    assert mean_interval(values, families).std / math.sqrt(36) == pytest.approx(error)


def test_the_sign_flip_interval_is_the_test_inverted() -> None:
    rng = np.random.default_rng(3)
    families = np.repeat(np.arange(12), rng.integers(2, 5, 12))
    values = np.round(rng.normal(0.1, 0.4, families.size).clip(-1, 1), 3)
    found = mean_interval(values, families.tolist(), support=(-1, 1))
    assert found.method == "sign_flip"
    assert found.low is not None
    assert found.high is not None
    for theta, inside in ((found.low - 1e-6, False), (found.low + 1e-6, True), (found.high + 1e-6, False)):
        side = "greater" if theta < found.mean else "less"
        p = one_sided_p(values, families.tolist(), shift=theta, alternative=side)
        assert (p > 0.025) is inside


def test_p_flips_whole_families() -> None:
    values = [0.5, 0.5, 0.25, -0.25, 0.75, 0.25] * 3
    families = [place + 3 * n for n in range(3) for place in (0, 0, 1, 1, 2, 2)]
    sums = [1.0, 0.0, 1.0] * 3
    reached = [np.dot(signs, sums) >= 6.0 for signs in product((1, -1), repeat=9)]
    assert one_sided_p(values, families) == np.mean(reached)


def test_families_that_share_their_gains_are_covered_where_scenarios_are_not() -> None:
    held = np.zeros(2)
    families = np.repeat(np.arange(20), 5)
    for run in range(150):
        rng = np.random.default_rng(run)
        shared, own = rng.normal(0, 0.28, 20)[families], rng.normal(0, 0.1, 100)
        values = (0.05 + shared + own).clip(-1, 1)
        for place, units in enumerate((families.tolist(), ())):
            found = mean_interval(values, units, support=(-1, 1), resamples=1000)
            assert found.low is not None
            assert found.high is not None
            held[place] += found.low <= 0.05 <= found.high
    assert held[0] / 150 >= 0.9
    assert held[1] / 150 <= 0.75


def test_families_and_values_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="3 families need as many values"):
        mean_interval([0.5] * 9, [1, 1, 2])
    assert paired_interval([0.0] * 3, [1.0] * 3, ["a", "a", "b"]).mean == 1.0
