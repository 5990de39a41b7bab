"""Bounds and evidence of two arms under constant looking, simulated."""

import math

import numpy as np
import pytest

from pytest_tfgrpo.numerics.two_arms import DifferenceSequence, odds_evidence, rate_evidence

RUNS, UNITS, LEVEL = 400, 1500, 0.05
MOST = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)
"""Failures of so many runs that a level allows, with three standard errors."""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize(("difference", "drift"), [(0.0, 0.0), (-0.2, 0.0), (0.1, 0.3)])
def test_bounds_hold_at_all_times_though_hours_differ(share: float, difference: float, drift: float) -> None:
    rng, missed = np.random.default_rng(11), 0
    for _ in range(RUNS):
        sequence, ever = DifferenceSequence(LEVEL / 2), False
        canary = rng.random(UNITS) < share
        level = 0.5 + drift * np.sin(np.arange(UNITS) / 100)
        values = (rng.random(UNITS) < np.clip(level + difference * canary, 0, 1)).astype(float)
        for value, arm in zip(values.tolist(), canary.tolist(), strict=True):
            sequence.add(value, arm, share)
            ever = ever or not sequence.low <= difference <= sequence.high
        missed += ever
    assert missed / RUNS <= MOST


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_evidence_of_a_rate_at_the_limit_is_rarely_ever_large(rate: float) -> None:
    rng, shown = np.random.default_rng(12), 0
    for _ in range(RUNS):
        hits = np.cumsum(rng.random(UNITS) < rate).tolist()
        needed = math.log(1 / LEVEL)
        shown += any(rate_evidence(count, n, rate) >= needed for n, count in enumerate(hits, 1))
    assert 0 < shown / RUNS <= MOST


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_evidence_of_odds_of_equal_arms_is_rarely_ever_large_though_rates_drift(share: float) -> None:
    rng, shown = np.random.default_rng(13), 0
    rates = 0.1 + 0.5 * (np.arange(UNITS) % 500 > 400)  # outages that meet both arms
    for _ in range(RUNS):
        canary, hit = rng.random(UNITS) < share, rng.random(UNITS) < rates
        pairs = zip(np.cumsum(canary & hit).tolist(), np.cumsum(~canary & hit).tolist(), strict=True)
        shown += any(odds_evidence([(a, b, share)]) >= math.log(1 / LEVEL) for a, b in pairs)
    assert 0 < shown / RUNS <= MOST
