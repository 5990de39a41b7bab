"""The confidence sequence of a finite population: valid at all times at once, exact at the end."""

import math
from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.samples import bounds, foreseen_and_found

from pytest_tfgrpo.numerics.sequential import CELLS, TRUNCATION, IntervalSequence, MeanSequence

values = st.lists(st.one_of(st.none(), st.floats(-1, 1, width=32)), min_size=1, max_size=40)
PLAIN = [-1.0, 0.0, 0.0, 1.0, 0.5]


def gambled(population: Sequence[float], m: float, up: bool) -> list[float]:
    """Return the capital of one gambler against m, value by value, as the paper has it; all in [0, 1]."""
    capital, found, n = 1.0, [], len(population)
    for t, x in enumerate(population):
        past = population[:t]
        m_t = min(max((n * m - sum(past)) / (n - t), 0.0), 1.0)
        means = [(0.5 + sum(past[: i + 1])) / (i + 2) for i in range(t)]
        centre = (0.5 + sum(past)) / (1 + t)
        variance = (0.25 + sum((p - mean) ** 2 for p, mean in zip(past, means, strict=True))) / (1 + t)
        d = centre - m_t
        stake = max(d if up else -d, 0.0) / (variance + d * d)
        room = m_t if up else 1 - m_t
        stake = min(stake, TRUNCATION / room if room else math.inf)
        capital *= 1 + (stake if up else -stake) * (x - m_t)
        found.append(capital)
    return found


@reaches("some known", "some unknown")
@given(values)
def test_after_all_values_both_bounds_are_the_mean_of_those_there_are(population: list[float | None]) -> None:
    low, high = bounds(population)[-1]
    known = [x for x in population if x is not None]
    reached("some unknown", len(known) < len(population))
    if reached("some known", known):
        assert low == pytest.approx(high, abs=1e-9)
        assert low == pytest.approx(sum(known) / len(known), abs=1e-6)


@given(values)
def test_the_interval_never_gets_wider(population: list[float | None]) -> None:
    widths = [high - low for low, high in bounds(population)]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(widths))


@given(values)
def test_bounds_lie_in_the_support_and_in_order(population: list[float | None]) -> None:
    assert all(-1 - 1e-9 <= low <= high + 1e-9 <= 1 + 2e-9 for low, high in bounds(population))


@pytest.mark.parametrize("population", [PLAIN, [1.0, 1.0, -1.0, -1.0, -1.0], [0.2, 0.2, 0.2, 0.9, -1.0]])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.4])
def test_over_all_orders_of_a_tiny_population_the_mean_is_missed_rarely_enough(
    population: list[float], alpha: float
) -> None:
    mean, orders = sum(population) / len(population), list(permutations(population))
    runs = [bounds(order, alpha_low=alpha, alpha_high=alpha)[:-1] for order in orders]
    below = sum(any(high < mean - 1e-9 for _, high in run) for run in runs)
    above = sum(any(low > mean + 1e-9 for low, _ in run) for run in runs)
    assert max(below, above) <= alpha * len(orders)


@pytest.mark.parametrize("up", [True, False])
def test_the_capital_against_the_true_mean_neither_grows_nor_shrinks_over_all_orders(up: bool) -> None:
    population = [(x + 1) / 2 for x in PLAIN]
    mean = sum(population) / len(population)
    ends = [gambled(order, mean, up)[-1] for order in permutations(population)]
    assert sum(ends) / len(ends) == pytest.approx(1.0, abs=1e-9)


def test_the_bounds_are_where_brute_force_finds_the_first_candidate_that_stands() -> None:
    rng = np.random.default_rng(3)
    population = [float(x) for x in rng.choice([0.0, 0.5, 1.0], 40, p=[0.1, 0.2, 0.7])]
    found = bounds(population, support=(0.0, 1.0), alpha_low=0.1, alpha_high=0.1)  # type: ignore[arg-type]
    t, step = 19, 8 / CELLS
    grid = [k * step for k in range(CELLS // 8 + 1)]
    up = [max(gambled(population, m, True)[: t + 1]) >= 10 for m in grid]
    down = [max(gambled(population, m, False)[: t + 1]) >= 10 for m in grid]
    assert found[t][0] == pytest.approx(grid[up.index(False) - 1], abs=step)
    assert found[t][1] == pytest.approx(grid[-down[::-1].index(False)], abs=step)


def test_with_few_left_the_bounds_close_in() -> None:
    rng = np.random.default_rng(1)
    run = bounds([float(x) for x in rng.choice([-1, 0, 1], 400)])
    widths = [run[n - 1][1] - run[n - 1][0] for n in (50, 200, 360, 400)]
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < 0.15
    assert widths[3] < 1e-9


@pytest.mark.parametrize("value", [1.1, -1.1, math.inf, math.nan])
def test_a_value_outside_of_the_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="outside of the support"):
        MeanSequence(3).feed(value)


def test_one_value_too_many_is_refused() -> None:
    sequence = MeanSequence(1)
    sequence.feed(0.5)
    with pytest.raises(ValueError, match="all 1 values were seen"):
        sequence.feed(0.5)


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"size": 3, "alpha_low": 0.0}, {"size": 3, "alpha_high": 1.0}]
)
def test_no_population_and_no_level_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected size"):
        MeanSequence(**options)  # type: ignore[arg-type]


# Families, drawn whole


def family_bounds(order: Sequence[Sequence[float | None]], **options: float) -> list[tuple[float, float]]:
    """Return the bounds after each family."""
    sizes = [len(family) for family in order]
    sequence, found = MeanSequence(sum(sizes), families=sizes, **options), []  # type: ignore[arg-type]
    for family in order:
        sequence.feed(*family)
        found.append((sequence.low, sequence.high))
    return found


@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(-1, 1, width=32)), min_size=1, max_size=6), min_size=1)
)
def test_after_all_families_both_bounds_are_the_mean_over_values(families: list[list[float | None]]) -> None:
    found = family_bounds(families)
    known = [x for family in families for x in family if x is not None]
    assert all(later[0] >= one[0] - 1e-12 and later[1] <= one[1] + 1e-12 for one, later in pairwise(found))
    if known:
        assert found[-1] == pytest.approx((sum(known) / len(known),) * 2, abs=1e-6)


@given(values)
def test_families_of_one_are_values_by_themselves(population: list[float | None]) -> None:
    assert family_bounds([[value] for value in population]) == bounds(population)


@pytest.mark.parametrize(
    "families",
    [
        [[-1.0], [0.0, 0.0, 0.0], [1.0, 1.0], [0.5], [-1.0, 0.5]],
        [[1.0, 1.0, 1.0, 1.0], [-1.0], [-1.0], [-1.0], [-0.5, -0.5]],
        [[0.2, 0.2], [0.9, None], [-1.0, -1.0], [None, None], [0.0, 1.0]],
    ],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.4])
def test_over_all_orders_of_families_the_mean_over_values_is_missed_rarely_enough(
    families: list[list[float | None]], alpha: float
) -> None:
    known = [x for family in families for x in family if x is not None]
    mean, orders = sum(known) / len(known), list(permutations(families))
    runs = [family_bounds(order, alpha_low=alpha, alpha_high=alpha)[:-1] for order in orders]
    below = sum(any(high < mean - 1e-9 for _, high in run) for run in runs)
    above = sum(any(low > mean + 1e-9 for low, _ in run) for run in runs)
    assert max(below, above) <= alpha * len(orders)


@pytest.mark.parametrize("sizes", [(5,), (1, 2, 3, 10)])
def test_the_interval_foreseen_is_no_narrower_than_that_of_the_whole_population(
    sizes: tuple[int, ...],
) -> None:
    for run in range(4):
        foreseen, found = foreseen_and_found(run, sizes)
        assert foreseen >= 0.98 * found


def test_the_interval_foreseen_takes_the_spread_for_the_largest_that_it_may_be() -> None:
    mean = MeanSequence(40)
    foreseen = IntervalSequence(mean, spread_alpha=0.0025, alpha=0.02)
    for value in (1.0, -1.0):
        mean.feed(value)
        low, high = foreseen.feed(value)
    half = 2.0537 / math.sqrt(39)  # of values all at either end
    assert half <= mean.low - low <= 1.05 * half
    assert high - mean.high == pytest.approx(mean.low - low)


def test_families_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match="families of 5 values"):
        MeanSequence(5, families=[2, 2])
    sequence = MeanSequence(4, families=[2, 2])
    with pytest.raises(ValueError, match="no family"):
        sequence.feed(0.0, 0.0, 0.0)


def test_each_bound_moves_by_what_is_seen_and_not_by_the_range_alone() -> None:
    for value, at in ((0.0, 1), (1.0, 0)):
        sequence = MeanSequence(1000, support=(0.0, 1.0))
        for _ in range(100):
            sequence.feed(value)
        bounds = (sequence.low, sequence.high)
        assert abs(bounds[at] - value) < 0.1, "the range alone leaves 0.9"
