"""What the report says of a gate that may end a sweep early."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_tfgrpo.report.blocks.sequential import SEQUENTIAL, sequential_lines


def of(**values: Any) -> Any:
    return SimpleNamespace(**values)


GATE = of(obstacle="")


def sweeps(settled: int, *, concurrent: bool = True) -> Any:
    after = of(settled=range(settled), phase=of(scenarios=range(9), rollouts=3))
    return of(after=after, before=of(phase=of(rollouts=2, concurrent=concurrent)))


def value(counted: Any, *, sequential: bool = True, verdict: Any = GATE) -> Any:
    run = of(settings={"gate_sequential": sequential})
    return SEQUENTIAL.value(of(run=run, sweeps=counted, verdict=verdict))


def test_what_an_early_end_saved_counts_the_control_that_goes_along() -> None:
    expected = {"scenarios": 9, "asked": 5, "left_out": 4, "rollouts_saved": 20, "reason": ""}
    assert value(sweeps(4)) == expected
    assert value(sweeps(4, concurrent=False)) == expected | {"rollouts_saved": 12}
    assert value(of(after=sweeps(4).after, before=None)) == expected | {"rollouts_saved": 12}


def test_a_sweep_that_ran_to_its_end_has_a_reason() -> None:
    assert value(sweeps(0))["reason"] == "nothing was decided before the end"
    assert value(sweeps(0), verdict=None)["reason"] == "no rule of the gate is set"
    kept = value(sweeps(0), verdict=of(obstacle="too few scenarios"))
    assert sequential_lines({"sequential": kept}, 80) == [
        "sequential gate  0 rollouts saved: too few scenarios"
    ]


def test_without_a_sequential_gate_or_a_final_sweep_there_is_nothing_to_say() -> None:
    assert value(sweeps(4), sequential=False) is None
    assert value(of(after=None, before=None)) is None
    assert sequential_lines({"sequential": None}, 80) == []
