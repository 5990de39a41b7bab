"""Places and seeds, which depend on what a rollout is, and on nothing else."""

from collections import Counter
from dataclasses import replace

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.runs.seeds import control_first, place_among, placebo_place, rollout_seed

SCENARIO = make_scenario("a", split="eval", stamp="1" * 64)
FINAL = Phase(epoch=2, mode="eval", temperature=0.3, rollouts=4, scenarios=("a",))
CONTROL = replace(FINAL, epoch=0, mode="baseline", concurrent=True)
PLACEBO = replace(FINAL, epoch=-2, mode="placebo", concurrent=True)
SIDE = replace(FINAL, epoch=3)


def places(phase: Phase, of: int, seed: int = 0) -> list[int]:
    return [place_among(seed, SCENARIO, phase, index, of) for index in range(90)]


def test_a_control_is_first_or_second_and_a_placebo_has_its_own_place() -> None:
    assert places(CONTROL, 3) == [int(not control_first(0, SCENARIO, n)) for n in range(90)]
    assert places(PLACEBO, 3) == [placebo_place(0, SCENARIO, n, 3) for n in range(90)]


@pytest.mark.parametrize("phase", [PLACEBO, FINAL, SIDE])
def test_every_place_is_about_as_likely_and_another_seed_or_phase_has_others(phase: Phase) -> None:
    found = places(phase, 3)
    assert set(found) == {0, 1, 2}
    assert min(Counter(found).values()) > 15
    assert found == places(phase, 3)
    others = [
        places(phase, 3, seed=1),
        *(places(other, 3) for other in (PLACEBO, FINAL, SIDE) if other is not phase),
    ]
    assert found not in others


def test_places_and_seeds_differ_by_scenario_place_and_seed_of_the_run() -> None:
    other = make_scenario("b", split="eval", stamp="2" * 64)
    for phase in (CONTROL, PLACEBO, SIDE):
        beside = [place_among(0, other, phase, index, 3) for index in range(90)]
        assert beside != places(phase, 3)
    assert len(set(places(CONTROL, 2))) == 2
    seeds = {
        rollout_seed(seed, scenario, FINAL, index)
        for seed in (0, 1)
        for scenario in (SCENARIO, other)
        for index in (0, 1)
    }
    assert len(seeds) == 8
    assert rollout_seed(0, SCENARIO, CONTROL, 1) == rollout_seed(0, SCENARIO, FINAL, 1)
