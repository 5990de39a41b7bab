import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.estimate.ranges import Figures, Range, UnitUse, high_ends, predict, total, up_to

finite = st.floats(0, 1e6)
uses = st.builds(UnitUse, finite, finite, finite | st.none())


@given(st.lists(uses, min_size=1, max_size=20), st.integers(0, 10_000))
def test_a_prediction_is_a_range_around_the_mean_and_never_negative(
    records: list[UnitUse], count: int
) -> None:
    found = predict(records, count)
    mean = sum(record.tokens for record in records) / len(records) * count
    assert found.tokens is not None
    assert 0 <= found.tokens.low <= mean * (1 + 1e-9)
    assert found.tokens.high >= mean * (1 - 1e-9)
    assert (found.usd is None) is any(record.usd is None for record in records)


def test_the_real_sum_lies_within_the_range_about_always() -> None:
    rng = random.Random(0)

    def draw() -> float:
        return rng.lognormvariate(5, 0.8)

    hits = 0
    for _ in range(300):
        seen = [UnitUse(1, draw(), None) for _ in range(30)]
        found = predict(seen, 100).tokens
        assert found is not None
        hits += found.low <= sum(draw() for _ in range(100)) <= found.high
    assert hits >= 285


def test_a_single_record_makes_no_certainty() -> None:
    found = predict([UnitUse(1, 100, 0.01)], 10)
    assert found.tokens is not None
    assert found.tokens.low < 500
    assert found.tokens.high > 1500


def test_equal_records_make_an_exact_figure() -> None:
    assert predict([UnitUse(2, 100, 0.0)] * 10, 5) == Figures(
        calls=Range(10, 10), tokens=Range(500, 500), usd=Range(0, 0)
    )


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    known = Figures(calls=Range(1, 2), tokens=Range(3, 4), usd=Range(5, 6))
    assert total([known, known]) == Figures(calls=Range(2, 4), tokens=Range(6, 8), usd=Range(10, 12))
    assert total([known, Figures(calls=Range(1, 1), tokens=None, usd=None)]) == Figures(
        calls=Range(2, 3), tokens=None, usd=None
    )


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_asked_uses_nothing(count: int) -> None:
    found = predict([UnitUse(1, 7, 0.5)] * 6, count)
    assert found.tokens == Range(7 * count, 7 * count)


@pytest.mark.parametrize(("n", "sure"), [(4, False), (5, True)])
def test_fewer_than_five_equal_records_may_all_be_off(n: int, sure: bool) -> None:
    found = predict([UnitUse(1, 100, None)] * n, 10).tokens
    assert found is not None
    assert (found.low == found.high == 1000) is sure


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([10.0, 20.0], 135 - 2 * 3375**0.5, 165 + 2 * 3375**0.5),  # half the mean, as there are few
        ([10.0, 10.0, 10.0, 10.0, 20.0], 120 - 12 - 2 * 600**0.5, 120 + 12 + 2 * 600**0.5),
        ([0.0, 0.0], 0.0, 0.0),
    ],
)
def test_a_prediction_is_two_standard_errors_and_a_tenth_around_the_mean(
    values: list[float], low: float, high: float
) -> None:
    found = predict([UnitUse(1, value, None) for value in values], 10).tokens
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_the_ends_of_what_is_known_are_taken_each_by_itself() -> None:
    found = Figures(calls=Range(1, 2), tokens=None, usd=Range(3, 4))
    assert up_to(found) == Figures(calls=Range(0, 2), tokens=None, usd=Range(0, 4))
    assert high_ends(found) == Figures(calls=Range(2, 2), tokens=None, usd=Range(4, 4))
    assert up_to(Figures(usd=None)) == Figures(usd=None)
