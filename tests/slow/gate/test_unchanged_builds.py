"""Builds without a change, against a baseline saved as docs/ci.md says."""

import numpy as np

from pytest_tfgrpo.gate.difference import Bar, can_be_seen, judge_difference
from pytest_tfgrpo.gate.looks import ALPHA, SHARES, TIMES, Look
from pytest_tfgrpo.metrics.comparison import Tally
from pytest_tfgrpo.numerics.unchanged import Limits, LookPlan, StoredSweep, red_share

FIRST, BUILDS = 3, 500


def tallies(passed_K, rollouts: int) -> dict[str, Tally]:
    return {
        f"s{n}": Tally(stamp="x", n=rollouts, sum=float(x), sum_sq=float(x), errors=0)
        for n, x in enumerate(passed_K)
    }


def is_red(rng: np.random.Generator, before: dict[str, Tally], p_K) -> bool:
    looks: list[Look] = []
    made, passed_K = 0, np.zeros(p_K.size)
    for times, share in zip(TIMES, SHARES, strict=True):
        passed_K = passed_K + rng.binomial(FIRST * times - made, p_K)
        made = FIRST * times
        looks.append(Look(tallies(passed_K, made), ALPHA * share, made))
        result = judge_difference("baseline", before, looks, Bar(margin=0.05, alarm=0.15))
        if result.outcome != "fail" or not can_be_seen(result):
            break
    return result.outcome == "fail"


def shares(rollouts: int) -> tuple[float, float]:
    """Return the share of red builds, and the share that their baselines foretell."""
    rng = np.random.default_rng([4, rollouts])
    red, foretold = [], []
    plan = [LookPlan(FIRST * times, ALPHA * share) for times, share in zip(TIMES, SHARES, strict=True)]
    for n in range(BUILDS):
        p_K = rng.uniform(0.2, 0.8, 40)
        before = tallies(rng.binomial(rollouts, p_K), rollouts)
        red.append(is_red(rng, before, p_K))
        if n % 10 == 0:
            stored = StoredSweep(list(before.values()), list(before))
            foretold.append(red_share(stored, plan, Limits(0.05, 0.15), draws=100))
    return float(np.mean(red)), float(np.mean(foretold))


def test_three_sweeps_of_five_rollouts_keep_unchanged_builds_green() -> None:
    red, foretold = shares(3 * 5)
    assert red <= 0.04
    assert abs(red - foretold) < 0.02


def test_one_sweep_does_not_and_the_baseline_says_so() -> None:
    red, foretold = shares(5)
    assert red > 0.06
    assert abs(red - foretold) < 0.04
