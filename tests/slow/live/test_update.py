"""Updates of the selector: what is learned, from which runs, and when nothing is."""

import statistics
from dataclasses import replace

import pytest
from support.live_runs import POINTS, LiveWorld

from pytest_tfgrpo.live.update import Learning, PolicyAlgorithm

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
