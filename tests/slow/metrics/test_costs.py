from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metrics.costs import calls, frames, with_calls, with_rollouts
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Frame, ModelCall
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics.costs import of_run
from pytest_tfgrpo.report.cost import cost_lines
from pytest_tfgrpo.report.value import build


@settings(max_examples=40)
@given(st.lists(st.lists(frames, max_size=4), min_size=2, max_size=2), st.lists(calls, max_size=6))
def test_the_parts_add_up_to_the_whole_and_fit_the_schema(
    own: list[list[Frame]], made: list[ModelCall]
) -> None:
    run = make_run({"a": [1, 0]}, {"a": [1, 1]}, {"t": [1, 0]})
    first = with_rollouts(run, *own).phases
    run = with_calls(replace(run, phases=(*first, *run.phases[1:])), *made)
    cost = of_run(run)
    parts = [row[purpose] for row in cost["epochs"] for purpose in ("rollouts", "learning", "judge")]
    for key in ("calls", "failed", "unknown", "tokens"):
        assert sum(part[key] for part in parts) == cost[key]
    assert fsum(part["usd"] or 0.0 for part in parts) == pytest.approx(cost["usd"])
    assert violations("report", build(run, None)) == []
    lines = cost_lines(cost, 80)
    assert all(len(line) <= 80 for line in lines)
    assert ("+" in "".join(lines[:5])) <= bool(cost["unknown"])
