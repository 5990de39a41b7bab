"""Updates of the selector: what is learned, from which runs, and when nothing is."""

import statistics
from dataclasses import replace

import pytest
from support.live_runs import POINTS, RATES, LiveWorld

from pytest_tfgrpo.production.live.selection.update import Learning, PolicyAlgorithm

LEARNING = Learning(points=POINTS, strategy="outcome_v1")
ALGORITHMS: tuple[PolicyAlgorithm, ...] = ("ppo", "grpo", "rloo")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_c02_the_selector_finds_the_best_arms(algorithm: PolicyAlgorithm) -> None:
    late = []
    for seed in range(5 if algorithm == "ppo" else 2):
        world = LiveWorld(seed, learning=replace(LEARNING, algorithm=algorithm))
        world.serve(600)
        late.append(world.late())
    assert statistics.mean(late) >= 0.9


EQUAL = {category: {"bare": 0.6, "learned": 0.6, "misled": 0.6} for category in RATES}
TWO = {"config": {"bare": "s-bare", "learned": "s-learned"}}


def test_equal_arms_are_explored_for_good() -> None:
    """900 runs, three categories, 12 seeds: by chance alone one of three arms took .9 and more."""
    most = []
    for seed in range(12):
        world = LiveWorld(seed, rates=EQUAL)
        world.serve(900)
        most += [max(world.selector.probabilities("config", category).values()) for category in EQUAL]
    assert statistics.median(most) < 0.65
    assert sum(p > 0.9 for p in most) <= len(most) // 6


def test_a_small_difference_is_found_as_soon_as_before() -> None:
    """Runs until `learned` has .8 on average; the median was 124 runs when nothing kept arms open."""
    found = []
    for seed in range(12):
        rates = {category: {"bare": 0.6, "learned": 0.8} for category in RATES}
        world = LiveWorld(seed, rates=rates, learning=replace(LEARNING, points=TWO))
        while statistics.mean(world.selector.probabilities("config", c)["learned"] for c in rates) < 0.8:
            world.serve(8)
            assert len(world.runs) < 900
        found.append(len(world.runs))
    assert statistics.median(found) <= 150
