"""Which call of a message belongs to which span of a tool, and what becomes of the others."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tfgrpo.telemetry.traces.calls import with_calls
from pytest_tfgrpo.telemetry.traces.turns import TraceCall, TraceStep


def turn(start_ns: int, *calls: TraceCall, answers: int = 0, kind: Any = "turn") -> TraceStep:
    return TraceStep(
        kind=kind, name="m", start_ns=start_ns, end_ns=start_ns + 5, error=None, calls=calls, answers=answers
    )


def tool(start_ns: int, name: str = "clock", **more: Any) -> TraceStep:
    known: dict[str, Any] = {"kind": "tool", "end_ns": start_ns + 2, "error": None}
    return TraceStep(name=name, start_ns=start_ns, **known | more)


def call(id_: str = "", name: str = "clock", arguments: str = "{}", **more: Any) -> TraceCall:
    return TraceCall(id_, name, arguments, **more)


def tools(*steps: TraceStep) -> list[tuple[str, str, str]]:
    found = with_calls(turn(0, kind="agent"), steps)
    return [(step.name, step.asked, step.answered) for step in found if step.kind == "tool"]


def test_a_call_without_a_span_lasts_from_the_turn_that_made_it_to_the_first_that_has_its_result() -> None:
    made, back = call("c1"), call("c1", result="noon")
    steps = turn(10, made, answers=1), turn(30, made), turn(50, back), turn(70, call("c1", result="later"))
    (found,) = (step for step in with_calls(turn(0), steps) if step.kind == "tool")
    assert (found.start_ns, found.end_ns, found.answered, found.call, found.ended) == (
        15,
        50,
        "noon",
        "c1",
        True,
    )
    (found,) = (step for step in with_calls(turn(0), steps[:2]) if step.kind == "tool")
    assert (found.start_ns, found.end_ns, found.answered, found.ended) == (15, 15, "", False)
    (found,) = (step for step in with_calls(turn(0), [turn(50, back)]) if step.kind == "tool")
    assert (found.start_ns, found.end_ns, found.ended) == (50, 50, True), "only the last turn tells of it"


def test_a_turn_of_no_time_is_before_its_calls() -> None:
    at_once = TraceStep(
        kind="turn", name="m", start_ns=7, end_ns=7, error=None, calls=(call("c1"),), answers=1
    )
    assert [(step.kind, step.start_ns) for step in with_calls(turn(0), [at_once])] == [
        ("turn", 7),
        ("tool", 8),
    ]


@pytest.mark.parametrize(("result", "error"), [("boom", "boom"), ("", "_OTHER"), (None, "_OTHER")])
def test_a_call_that_failed_has_its_result_as_its_error(result: str | None, error: str) -> None:
    failed = turn(10, call("c1", result=result, failed=True))
    (alone,) = (step for step in with_calls(turn(0), [failed]) if step.kind == "tool")
    assert (alone.error, alone.answered) == (error, "")
    (_, spanned) = with_calls(turn(0), [failed, tool(20, call="c1", answered="seen")])
    assert (spanned.error, spanned.answered) == (error, result or "")
    (_, own) = with_calls(turn(0), [failed, tool(20, call="c1", error="own")])
    assert own.error == "own"


def test_a_span_has_the_name_arguments_and_result_that_messages_say() -> None:
    steps = turn(10, call("c1", "clock", '{"a":1}'), answers=1), tool(20, "run_tool", call="c1", asked="raw")
    assert tools(*steps) == [("clock", '{"a":1}', "")]
    steps = turn(10, call("c1", arguments="", result="noon")), tool(20, call="c1", asked="raw", answered="12")
    assert tools(*steps) == [("clock", "raw", "noon")]
    found = tool(20, call="c1", answered="12", error="late")
    assert tools(turn(10, call("c1")), found) == [("clock", "{}", "")], "its model received nothing"


def test_calls_without_ids_are_known_by_their_arguments_and_else_by_their_order() -> None:
    asked = turn(10, call(arguments="1"), call(arguments="2"), call(arguments="3"), answers=3)
    spans = tool(20, asked="2", answered="two"), tool(22, asked="x", answered="a"), tool(24, answered="b")
    assert tools(asked, *spans) == [("clock", "2", "two"), ("clock", "1", "a"), ("clock", "3", "b")]


def test_two_ids_that_differ_are_two_calls_unless_the_arguments_are_the_same() -> None:
    asked = turn(10, call("c1", arguments="1"), answers=1)
    assert len(tools(asked, tool(20, call="other", asked="2"))) == 2
    assert len(tools(asked, tool(20, call="other", asked="1"))) == 1
    assert len(tools(asked, tool(20, asked="2"))) == 1, "the span has no id"
    assert len(tools(turn(10, call(arguments="1"), answers=1), tool(20, call="other", asked="2"))) == 1


def test_the_one_call_and_the_one_span_that_are_left_between_two_turns_are_one_of_two_names() -> None:
    first, second = turn(10, call("c1", "clock"), answers=1), turn(30, call("c2", "map"), answers=1)
    assert tools(first, tool(20, "ClockTool"), second, tool(40, "MapTool")) == [
        ("clock", "{}", ""),
        ("map", "{}", ""),
    ]
    late = tools(first, second, tool(40, "ClockTool"), tool(42, "MapTool"))
    assert [name for name, *_ in late] == ["clock", "map", "ClockTool", "MapTool"], (
        "two are left behind the second"
    )
    assert len(tools(first, tool(20, "ClockTool", call="other"))) == 2, "it has an id of its own"
    known = turn(30, call("c1", "clock", result="noon"))
    assert tools(turn(10), tool(20, "ClockTool"), known) == [("clock", "{}", "noon")], (
        "the turn before made it"
    )


def test_what_only_a_result_tells_of_is_no_call_and_an_agent_tells_where_there_is_no_turn() -> None:
    assert tools(turn(10, call("c9", "", result="nobody's"))) == []
    agent = turn(0, call("c1", result="noon"), kind="agent")
    found = with_calls(agent, [tool(20, call="c1")])
    assert [(step.name, step.answered) for step in found] == [("clock", "noon")]
    assert with_calls(turn(0), [turn(10)]) == (turn(10),)


def test_a_span_is_one_call_though_several_would_fit() -> None:
    asked = turn(10, *(call(arguments=text) for text in "123"), answers=3)
    assert tools(asked, tool(20, asked="x", answered="a")) == [
        ("clock", "2", ""),
        ("clock", "3", ""),
        ("clock", "1", "a"),
    ]
    alike = turn(10, *(call(f"c{n}", arguments="1") for n in range(3)), answers=3)
    found = with_calls(turn(0), [alike, tool(20, asked="1")])
    assert [step.call for step in found if step.kind == "tool"] == ["c1", "c2", "c0"]
