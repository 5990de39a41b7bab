"""A baseline of all sweeps of one build: sums, what may be pooled, and drift."""

from dataclasses import replace

import numpy as np
import pytest
from support.sweeps import swept

from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.pooling import drift_of, pooled


def sweep(n: int, shift: float = 0.0, scenarios: int = 60, rollouts: int = 5) -> Baseline:
    """Return the baseline of one sweep of an agent that solves 6 of 10, shifted by what drifts."""
    rng = np.random.default_rng([7, n])
    passed = rng.random((scenarios, rollouts)) < 0.6 + shift
    run = swept({f"s{i}": [float(x) for x in row] for i, row in enumerate(passed)}, run_id=f"run{n}")
    return from_run(replace(run, finished_at=f"2026-02-{n + 1:02d}T00:00:00.000Z"), "main")


def test_drift_is_known_from_5_sweeps_on_and_is_what_rollouts_do_not_explain() -> None:
    still = [pooled(sweep(50 * k), [sweep(50 * k + n) for n in range(1, 20)]) for k in range(1)]
    assert drift_of(still[0]) == pytest.approx(0, abs=0.02)
    assert drift_of(pooled(sweep(0), [sweep(n) for n in range(1, 4)])) is None
    shifts = [0.1 * (-1) ** n for n in range(20)]
    drifted = drift_of(pooled(sweep(0, shifts[0]), [sweep(n, shifts[n]) for n in range(1, 20)]))
    assert drifted == pytest.approx(0.1, abs=0.03)
