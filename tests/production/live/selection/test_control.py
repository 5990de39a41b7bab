"""The test of the selector against its concurrent control: rarely wrong, and soon right."""

import math
import random
import statistics
from collections.abc import Callable, Mapping

import pytest

from pytest_tfgrpo.production.live.selection.control import MEMORY, NEEDED, bet, wealth
from pytest_tfgrpo.production.live.selection.selector import CONTROL_SHARE


def held_at(mean: Callable[[int, bool], float], seed: int, runs: int = 2000) -> float:
    """Return the run at which the wealth reaches 20, or infinity; q is 0 or 1."""
    rng = random.Random(seed)
    memory: Mapping[str, float] = {}
    for run in range(runs):
        control = rng.random() < CONTROL_SHARE
        memory = bet(memory, float(rng.random() < mean(run, control)), control=control)
        if wealth(memory) >= NEEDED:
            return run + 1
    return math.inf


def test_c03_equal_selectors_are_seldom_held() -> None:
    assert sum(held_at(lambda _run, _control: 0.6, seed) < math.inf for seed in range(80)) <= 5


def test_c03_a_better_selector_is_not_held() -> None:
    assert all(held_at(lambda _run, c: 0.5 if c else 0.8, seed) == math.inf for seed in range(20))


def test_c03_harm_is_found_within_200_runs_in_the_middle() -> None:
    found = [held_at(lambda _run, c: 0.8 if c else 0.4, seed) for seed in range(60)]
    assert statistics.median(found) <= 200


def test_c03_harm_that_sets_in_late_is_found_as_well() -> None:
    def mean(run: int, control: bool) -> float:
        return 0.6 if control else 0.75 if run < 600 else 0.2

    found = [held_at(mean, seed) - 600 for seed in range(30)]
    assert 0 < statistics.median(found) <= 2 * MEMORY


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_c03_under_equality_a_bet_is_fair_whatever_was_seen(q: float) -> None:
    rng = random.Random(2)
    memory: Mapping[str, float] = {}
    for _ in range(50):
        memory = bet(memory, rng.random() * 0.6, control=rng.random() < CONTROL_SHARE)
    before = wealth(memory)
    after = {control: wealth(bet(memory, q, control=control)) for control in (True, False)}
    expected = CONTROL_SHARE * after[True] + (1 - CONTROL_SHARE) * after[False]
    assert expected == pytest.approx(before)
    assert min(after.values()) > 0


def test_no_run_can_take_all_of_the_wealth() -> None:
    memory: Mapping[str, float] = {}
    for i in range(300):
        q = 0.0 if i % 10 == 0 else 1.0  # the worst for one who bets on control
        memory = bet(memory, q, control=i % 10 == 0)
        assert wealth(memory) > 0
    assert memory["runs"] == 300
    assert memory["controls"] == 30


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_reward_outside_of_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        bet({}, q, control=False)


def test_a_mean_begins_at_a_half_and_forgets_after_so_many_runs() -> None:
    assert bet({}, 1.0, control=False)["mean_q"] == 0.75
    for runs in (MEMORY - 1, MEMORY, 50 * MEMORY):
        found = bet({"runs": runs, "mean_q": 0.5}, 1.0, control=False)
        assert found["mean_q"] == pytest.approx(0.5 + 0.5 / (MEMORY + 1))


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_bet_against_a_margin_is_fair_where_the_selector_is_worse_by_so_much(margin: float) -> None:
    rng = random.Random(5)
    memory: Mapping[str, float] = {}
    for _ in range(200):
        memory = bet(memory, float(rng.random() < 0.7), control=rng.random() < CONTROL_SHARE, margin=margin)
    expected = 0.0
    for control, share in ((True, CONTROL_SHARE), (False, 1 - CONTROL_SHARE)):
        mean = 0.8 if control else 0.8 - margin
        for q, p in ((1.0, mean), (0.0, 1 - mean)):
            expected += share * p * wealth(bet(memory, q, control=control, margin=margin))
    assert expected == pytest.approx(wealth(memory))
    assert wealth(bet(memory, 0.0, control=True, margin=margin)) > 0
