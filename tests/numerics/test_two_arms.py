"""Two arms side by side: bounds and evidence that hold at all times."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.numerics.two_arms import DifferenceSequence, odds_evidence, rate_evidence

Unit = tuple[float, bool, float]
units = st.lists(
    st.tuples(st.floats(0, 1, width=32), st.booleans(), st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.95])),
    min_size=1,
    max_size=30,
)


def fed(found: Sequence[Unit], alpha: float = 0.02) -> DifferenceSequence:
    sequence = DifferenceSequence(alpha)
    for value, canary, share in found:
        sequence.add(value, canary, share)
    return sequence


def reference(found: Sequence[Unit], alpha: float) -> tuple[float, float]:
    """Return the estimate and the radius as the paper has them, from sums over all units."""
    needed, weights, values, squares, penalty = math.log(1 / alpha), [], [], [], 0.0
    for i, (x, canary, p) in enumerate(found):
        m = (0.5 + sum(unit[0] for unit in found[:i])) / (i + 1)
        ends = [(one - m) / p for one in (0.0, 1.0)] + [-(one - m) / (1 - p) for one in (0.0, 1.0)]
        d = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights) if weights else 0.0
        v = (x - m) / p if canary else -(x - m) / (1 - p)
        width = max(ends) - min(ends)
        off = (v - min(max(d, min(ends)), max(ends))) / width
        variance = (0.25 + sum(squares)) / (i + 1)
        bet = min(math.sqrt(2 * needed / (variance * (i + 1) * math.log(i + 2))), 0.5)
        penalty += (-math.log(1 - bet) - bet) * off**2
        squares.append(off**2)
        weights.append(bet / width)
        values.append(v)
    estimate = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    return estimate, (needed + penalty) / sum(weights)


@reaches("both arms", "one arm")
@given(units)
def test_bounds_are_those_of_the_paper(found: list[Unit]) -> None:
    sequence = fed(found)
    estimate, radius = reference(found, 0.02)
    assert sequence.estimate == pytest.approx(estimate, abs=1e-9)
    assert sequence.low == pytest.approx(max(-1, estimate - radius), abs=1e-9)
    assert sequence.high == pytest.approx(min(1, estimate + radius), abs=1e-9)
    reached("both arms", len({canary for _, canary, _ in found}) == 2)
    reached("one arm", len({canary for _, canary, _ in found}) == 1)


@given(units)
def test_arms_that_change_places_change_the_sign(found: list[Unit]) -> None:
    other = fed([(value, not canary, 1 - share) for value, canary, share in found])
    assert fed(found).estimate == pytest.approx(-other.estimate, abs=1e-9)


@given(units)
def test_a_smaller_level_widens_the_bounds(found: list[Unit]) -> None:
    assert fed(found, 0.001).high - fed(found, 0.001).low >= fed(found, 0.05).high - fed(found, 0.05).low


def test_of_no_unit_nothing_is_known() -> None:
    empty = DifferenceSequence(0.02)
    assert (empty.estimate, empty.low, empty.high) == (0.0, -1.0, 1.0)


@pytest.mark.parametrize("drop", [0.0, 0.3])
def test_the_estimate_finds_the_difference_though_hours_differ(drop: float) -> None:
    draw = np.random.default_rng(5)
    sequence = DifferenceSequence(0.02)
    for i in range(6000):
        share = 0.1 if i < 3000 else 0.5  # the canary has more of the bad hours
        canary = bool(draw.random() < share)
        level = 0.8 if i < 3000 else 0.5
        sequence.add(float(np.clip(level - drop * canary + draw.uniform(-0.2, 0.2), 0, 1)), canary, share)
    assert sequence.estimate == pytest.approx(-drop, abs=0.03)
    assert sequence.low < -drop < sequence.high
    assert (sequence.high < 0) is bool(drop)


def test_evidence_of_a_rate_is_the_mixture_of_likelihood_ratios() -> None:
    odds = np.geomspace(1.1, 20, 32) * 0.05 / 0.95
    rates = odds / (1 + odds)
    expected = np.mean((rates / 0.05) ** 7 * ((1 - rates) / 0.95) ** 33)
    assert rate_evidence(7, 40, 0.05) == pytest.approx(math.log(expected))
    assert rate_evidence(0, 0, 0.05) == pytest.approx(0.0)
    assert rate_evidence(32, 160, 0.05) > math.log(1 / 0.02) > rate_evidence(9, 160, 0.05)
    assert math.isfinite(rate_evidence(100_000, 100_000, 0.05))


def test_evidence_of_odds_looks_at_hits_alone() -> None:
    ratio = np.geomspace(1.1, 60, 32)
    whole = ratio * 0.1 + 0.9
    expected = np.mean((ratio / whole) ** 5 * (1 / whole) ** 8)
    assert odds_evidence([(5, 8, 0.1)]) == pytest.approx(math.log(expected))
    assert odds_evidence([]) == pytest.approx(0.0)
    assert odds_evidence([(9, 81, 0.1), (30, 30, 0.5)]) < 0 < odds_evidence([(30, 81, 0.1), (0, 0, 0.5)])


@pytest.mark.parametrize("limit", [0.05, 0.2])
def test_one_more_unit_changes_evidence_by_nothing_on_average_at_the_limit(limit: float) -> None:
    """It is a martingale: what makes looking often free."""
    now = math.exp(rate_evidence(6, 50, limit))
    hit, miss = (math.exp(rate_evidence(6 + more, 51, limit)) for more in (1, 0))
    assert limit * hit + (1 - limit) * miss == pytest.approx(now)
    now = math.exp(odds_evidence([(6, 50, limit)]))
    canary, control = (math.exp(odds_evidence([(6 + more, 51 - more, limit)])) for more in (1, 0))
    assert limit * canary + (1 - limit) * control == pytest.approx(now)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: DifferenceSequence(1.0), "alpha in"),
        (lambda: DifferenceSequence(0.02).add(1.1, True, 0.5), "a value in"),
        (lambda: DifferenceSequence(0.02).add(0.5, True, 0.0), "a share in"),
        (lambda: DifferenceSequence(0.02).add(0.5, True, 1.0), "a share in"),
        (lambda: rate_evidence(3, 2, 0.05), "hits of units"),
        (lambda: rate_evidence(1, 2, 1.0), "a limit in"),
        (lambda: odds_evidence([(1, 1, 1.0)]), "shares in"),
    ],
)
def test_what_is_out_of_range_is_refused(call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=said):
        call()
