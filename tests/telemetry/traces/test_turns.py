"""What a run of an agent says of itself, from its own span or from its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_tfgrpo.telemetry.traces.turns import AgentRun, TraceStep


def step(n: int, kind: Any = "turn", **fields: Any) -> TraceStep:
    known: dict[str, Any] = {
        "kind": kind,
        "name": f"{kind} {n}",
        "start_ns": n,
        "end_ns": n + 1,
        "error": None,
    }
    return TraceStep(**known | fields)


def run(*steps: TraceStep, **agent: Any) -> AgentRun:
    return AgentRun(
        key=("t", "s"), agent=step(0, "agent", **agent), steps=steps, outcomes=(), marks=(), place="a:1"
    )


def test_prompt_and_reply_are_the_agent_s_or_those_of_its_first_and_last_turn() -> None:
    turns = step(1, asked="first", answered="early"), step(2, "tool"), step(3, asked="later", answered="late")
    assert (run(*turns).prompt, run(*turns).reply) == ("first", "late")
    assert (run(*turns, asked="own", answered="said").prompt, run(*turns, answered="said").reply) == (
        "own",
        "said",
    )
    assert run(step(1, "tool", asked="x"), step(2, asked="second")).prompt == "second"
    assert run(*turns[:2]).reply == "", "it ended with a call of a tool"
    assert (run().prompt, run().reply) == ("", "")


@pytest.mark.parametrize(
    ("steps", "agent", "error"),
    [
        ((step(1, error="first"), step(2)), {}, None),
        ((step(1), step(2, error="last")), {}, "last"),
        ((step(1), step(2, error="last")), {"answered": "yet"}, None),
        ((step(1, error="last"),), {"error": "own"}, "own"),
        ((), {"error": "own", "answered": "yet"}, "own"),
        ((step(1, error="last"),), {"error": ""}, ""),
    ],
)
def test_a_run_failed_by_its_own_error_or_by_that_of_its_last_step(
    steps: tuple[TraceStep, ...], agent: dict[str, Any], error: str | None
) -> None:
    found = run(*steps, **agent)
    assert found.error == error
    if error is not None:
        assert found.reply == ""


def test_model_and_temperature_are_those_of_the_last_turn_that_names_one() -> None:
    steps = step(1, model="a", temperature=0.5), step(2, model="b", temperature=0.0), step(3)
    assert (run(*steps, model="own", temperature=1.0).model, run(*steps).temperature) == ("b", 0.0)
    assert (run(step(1), model="own").model, run(step(1), temperature=1.0).temperature) == ("own", 1.0)
    assert (run().model, run().temperature) == ("", None)


def test_tokens_and_costs_are_sums_of_the_turns_or_what_the_agent_says() -> None:
    steps = step(1, tokens=3, cost_usd=0.5), step(2, tokens=4), step(3, tokens=0, cost_usd=0.25)
    found = run(*steps, tokens=99, cost_usd=9.0)
    assert (found.tokens, found.cost_usd) == (7, 0.75)
    silent = replace(found, steps=(step(1),))
    assert (silent.tokens, silent.cost_usd) == (99, 9.0)
    free = replace(found, steps=(step(1, tokens=0, cost_usd=0.0),))
    assert (free.tokens, free.cost_usd) == (0, 0.0)
    assert (run().tokens, run().cost_usd) == (None, None)
