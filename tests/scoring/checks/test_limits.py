"""The check on what an attempt took."""

import pytest
from support.builders import make_frame

from pytest_tfgrpo.core.conversations import USER

FRAMES = [
    make_frame("small", kind="model", tokens=100, cost_usd=0.01),
    make_frame("search", tokens=0),
    make_frame("small", kind="model", tokens=50, cost_usd=0.02),
]


@pytest.mark.parametrize(
    ("name", "taken", "shown"),
    [
        ("steps", 3, "steps 3 of at most 2"),
        ("turns", 2, "turns 2 of at most 1"),
        ("tokens", 150, "tokens 150 of at most 149"),
        ("cost_usd", 0.03, "cost_usd 0.03 of at most 0.02"),
        ("latency_ms", 900.0, "latency_ms 900 of at most 899"),
    ],
)
def test_an_attempt_may_take_as_much_as_a_limit_says_and_no_more(judge, name, taken, shown):
    less = taken - (0.01 if name == "cost_usd" else 1)
    assert judge("limits", frames=FRAMES, took_ms=900.0, **{name: taken}).passed
    result = judge("limits", frames=FRAMES, took_ms=900.0, **{name: less})
    assert (result.credit, result.reason) == (0, f"took too much: {shown}")


@pytest.mark.parametrize("frames", [[make_frame("search", tokens=0)], []])
@pytest.mark.parametrize("opposite", [False, True])
def test_an_agent_that_reports_no_call_of_a_model_keeps_within_no_turns(judge, frames, opposite):
    result = judge("limits", frames=frames, turns=5, **({"not": True} if opposite else {}))
    assert result.credit == 0
    assert result.reason.startswith("turns is unknown: the agent does not report it")


def test_each_limit_that_is_passed_is_named(judge):
    reason = judge("limits", frames=FRAMES, steps=1, turns=9, tokens=1).reason
    assert reason == "took too much: steps 3 of at most 1, tokens 150 of at most 1"


@pytest.mark.parametrize("limit", ["cost_usd", "tokens"])
@pytest.mark.parametrize("opposite", [False, True])
def test_what_the_agent_does_not_report_gives_no_credit_either_way(judge, opposite, limit):
    silent = [make_frame("small", kind="model", tokens=0, cost_usd=None)]
    result = judge("limits", frames=silent, **{limit: 1}, **({"not": True} if opposite else {}))
    assert result.credit == 0
    assert result.reason.startswith(f"{limit} is unknown: the agent does not report it")


def test_of_several_limits_on_what_is_unknown_the_first_is_named(judge):
    silent = [make_frame("small", kind="model", tokens=0, cost_usd=None)]
    reason = judge("limits", frames=silent, tokens=1, cost_usd=1).reason
    assert reason.startswith("tokens is unknown: ")


def test_turns_of_a_conversation_are_what_its_user_said(judge):
    frames = [make_frame("user", kind=USER), *FRAMES, make_frame("user", kind=USER), *FRAMES]
    assert judge("limits", frames=frames, turns=2, steps=6).passed
    assert judge("limits", frames=frames, turns=1).reason == "took too much: turns 2 of at most 1"
