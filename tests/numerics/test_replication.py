"""The interval over seeds and families."""

import math

import numpy as np
import pytest
from support.samples import seeds_and_families

from pytest_tfgrpo.numerics.replication import TwoWay, two_way_interval
from pytest_tfgrpo.numerics.stats import mean_interval


@pytest.mark.parametrize("seeds", [3, 5])
def test_it_holds_the_truth_about_as_often_as_it_says_where_libraries_differ(seeds: int) -> None:
    found = [two_way_interval(*seeds_and_families(run, seeds, 0.1)) for run in range(30)]
    assert sum((one.low or 1) <= 0.1 <= (one.high or -1) for one in found) >= 27


def test_it_is_the_interval_over_families_where_seeds_agree() -> None:
    gains_SK, families_K = seeds_and_families(1, 1, 0.0)
    found = two_way_interval(np.repeat(gains_SK, 4, axis=0), families_K)
    one = mean_interval(gains_SK[0], families_K, support=(-1, 1))
    assert (found.low, found.high) == (pytest.approx(one.low), pytest.approx(one.high))
    assert found.seed_std == pytest.approx(0, abs=1e-12)


def test_seeds_that_differ_widen_it() -> None:
    gains_SK, families_K = seeds_and_families(1, 3, 0.0)
    far = gains_SK + np.array([[-0.2], [0.0], [0.2]])
    near, wide = two_way_interval(gains_SK, families_K), two_way_interval(far, families_K)
    assert near.mean == pytest.approx(wide.mean)
    assert (wide.high or 0) - (wide.low or 0) > 2 * ((near.high or 0) - (near.low or 0))
    assert wide.seed_std == pytest.approx(0.2, abs=0.06)


def test_there_is_none_under_three_seeds_or_eight_scenarios() -> None:
    gains_SK, families_K = seeds_and_families(1, 2, 0.1)
    found = two_way_interval(gains_SK, families_K)
    assert found.low is found.high is None
    assert found.mean == pytest.approx(gains_SK.mean())
    assert math.isnan(two_way_interval(gains_SK[:1], families_K).seed_std)
    assert two_way_interval(np.full((5, 7), 0.5)).low is None


def test_few_families_speak_of_just_these_scenarios() -> None:
    gains_SK, _ = seeds_and_families(1, 3, 0.1)
    assert two_way_interval(gains_SK, [n % 4 for n in range(60)]).just_these
    assert not two_way_interval(gains_SK).just_these


def test_a_stricter_level_is_wider_and_bounds_stay_possible() -> None:
    gains_SK, families_K = seeds_and_families(1, 3, 0.1)
    usual, strict = (
        two_way_interval(gains_SK, families_K),
        two_way_interval(gains_SK, families_K, level=0.999),
    )
    assert -1 <= (strict.low or 0) < (usual.low or 0) < (usual.high or 0) < (strict.high or 0) <= 1


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match=r"matrix of seeds and scenarios, got shape \(3,\)"):
        two_way_interval([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("low", "families", "just_these"), [(0.0, 4, True), (None, 4, False), (0.0, 0, False), (0.0, 8, False)]
)
def test_an_interval_over_few_families_speaks_of_just_these(
    low: float | None, families: float, just_these: bool
) -> None:
    assert TwoWay(0.1, low, low, 0.0, families).just_these is just_these


def test_seeds_that_differ_less_than_chance_still_widen_it() -> None:
    gains_K = np.linspace(-0.4, 0.5, 20)
    noise_SK = np.array([[0.2, -0.19] * 10, [-0.19, 0.2] * 10, [0.1, -0.1] * 10])
    found = two_way_interval(gains_K + noise_SK)
    over = mean_interval((gains_K + noise_SK).mean(axis=0), (), support=(-1.0, 1.0))
    assert found.seed_std == 0
    assert None not in (found.low, over.low)
    assert found.low < over.low  # type: ignore[operator]


@pytest.mark.parametrize(("families", "counted"), [(8, 8), (4, 40)])
def test_what_seeds_add_is_counted_by_families_where_there_are_enough(families: int, counted: int) -> None:
    gains_SK = np.random.default_rng(3).uniform(-0.3, 0.3, (4, 40)) + np.array([[0.3], [0.1], [-0.1], [-0.3]])
    gains_SK += np.tile(
        np.array([[0.2], [-0.2], [0.2], [-0.2]]) * np.linspace(-1, 1, families), 40 // families
    )
    rows_SK = gains_SK.reshape(4, 40 // counted, counted).mean(axis=1)
    found = two_way_interval(gains_SK, [n % families for n in range(40)])
    assert found.seed_std == pytest.approx(two_way_interval(rows_SK).seed_std)
