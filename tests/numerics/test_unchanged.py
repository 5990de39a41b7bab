"""How often a gate is red though nothing changed, from what a stored sweep leaves open."""

import numpy as np

from pytest_tfgrpo.metrics.comparison import Tally
from pytest_tfgrpo.numerics import unchanged
from pytest_tfgrpo.numerics.unchanged import Limits, LookPlan, StoredSweep

LOOKS = (LookPlan(3, 0.02), LookPlan(6, 0.0025), LookPlan(12, 0.0025))
USUAL = Limits(margin=0.05, alarm=0.15)


def red_share(sweep: StoredSweep, looks=LOOKS, limits=USUAL) -> float:
    return unchanged.red_share(sweep, looks, limits, draws=60)


def stored(n: int, rollouts: int, *, families: int = 0, graded: float = 1.0, chance: float | None = None):
    rng = np.random.default_rng(3)
    p_K = rng.uniform(0.2, 0.8, n) if chance is None else np.full(n, chance)
    sums_K = rng.binomial(rollouts, p_K)
    squares_K = sums_K * graded + (1 - graded) * sums_K**2 / rollouts
    rows = [
        Tally(stamp="x", n=rollouts, sum=float(x), sum_sq=float(square), errors=0)
        for x, square in zip(sums_K, squares_K, strict=True)
    ]
    return StoredSweep(rows, [i % families if families else i for i in range(n)])


def test_few_rollouts_in_the_baseline_make_it_red_more_often() -> None:
    shares = [red_share(stored(40, rollouts), LOOKS, USUAL) for rollouts in (1, 5, 15)]
    assert shares[0] > 0.3 > shares[1] > 0.04 > shares[2]


def test_rollouts_and_scenarios_to_come_count() -> None:
    now = stored(20, 5)
    assert red_share(now, LOOKS, USUAL) > 0.3
    assert red_share(now._replace(more=4.0), LOOKS, USUAL) < red_share(now, LOOKS, USUAL) - 0.1
    assert red_share(now._replace(times=4), LOOKS, USUAL) < 0.1


def test_the_rules_of_the_gate_count() -> None:
    now = stored(40, 15)
    assert red_share(now, LOOKS, USUAL._replace(strict=True)) > 0.5
    assert red_share(now, LOOKS, USUAL._replace(alarm=1.0)) <= 0.05
    assert red_share(now, LOOKS[:1], USUAL) > red_share(now, LOOKS, USUAL)
    assert red_share(now, LOOKS, USUAL._replace(drift=0.1)) > 0.3


def test_what_agrees_in_all_rollouts_is_bounded_by_the_number_of_scenarios() -> None:
    assert red_share(stored(12, 5, chance=1.0), LOOKS, USUAL) > 0.5
    assert red_share(stored(40, 5, chance=1.0), LOOKS, USUAL) < 0.05


def test_scores_that_vary_less_than_coins_are_more_certain() -> None:
    assert red_share(stored(20, 5, graded=0.2), LOOKS, USUAL) < red_share(stored(20, 5), LOOKS, USUAL) - 0.2
    assert red_share(stored(20, 5, graded=0.0), LOOKS, USUAL) < 0.05


def test_of_few_families_the_rollouts_decide() -> None:
    assert red_share(stored(40, 50, families=4), LOOKS, USUAL) < 0.1
