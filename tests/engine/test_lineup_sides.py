"""A lineup of several sides of one kind: together, in a drawn order, equal prompts once."""

from types import SimpleNamespace
from typing import Any

from support.builders import make_scenario

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.lineup import alike
from pytest_tfgrpo.runs.seeds import control_first, place_among, placebo_place


def phase(epoch: int, mode: Any = "eval") -> Phase:
    return Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=1, scenarios=("a",))


def shared(*sides: tuple[Phase, str]) -> dict[int, int]:
    asked: Any = [(one, SimpleNamespace(prompt_stamp=prompt)) for one, prompt in sides]
    return {one.epoch: server.epoch for one, server in alike(asked)}


def test_a_prompt_runs_in_the_last_side_that_has_it() -> None:
    one, two, three, four = map(phase, (1, 2, 3, 4))
    assert shared((one, "x"), (two, "y"), (three, "x"), (four, "z")) == {1: 3}
    assert shared((one, "x"), (two, "x"), (three, "x"), (four, "z")) == {1: 3, 2: 3}
    assert shared((one, "x"), (two, "y"), (three, "y"), (four, "x")) == {1: 4, 2: 3}
    assert shared((one, "x")) == {}


def test_a_control_and_a_placebo_share_with_the_final_sweep_alone() -> None:
    control, placebo, final = phase(0, "baseline"), phase(-2, "placebo"), phase(3)
    assert shared((control, "x"), (placebo, "x"), (final, "y")) == {}
    assert shared((control, "x"), (placebo, "x"), (final, "x")) == {0: 3, -2: 3}


def test_each_side_starts_as_often_at_each_place() -> None:
    scenario, count = make_scenario("a"), 300
    seen = [[0] * 3 for _ in range(3)]
    for index in range(count):
        placed = [3]
        for side in (1, 2):
            placed.insert(place_among(0, scenario, phase(side), index, len(placed) + 1), side)
        for place, side in enumerate(placed):
            seen[side - 1][place] += 1
    assert min(map(min, seen)) > 70
    control, placebo = phase(0, "baseline"), phase(-2, "placebo")
    places = [place_among(0, scenario, control, index, 2) for index in range(50)]
    assert places == [0 if control_first(0, scenario, index) else 1 for index in range(50)]
    beside = [place_among(0, scenario, placebo, index, 3) for index in range(50)]
    assert beside == [placebo_place(0, scenario, index, 3) for index in range(50)]
