"""What spans of any shape amount to: each call once, each agent's run its own, whatever came first."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from support.otlp_spans import agent, line, span

from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, RefusedTrace

KIND = "openinference.span.kind"
WRAPPER = {KIND: "LLM", "input.value": "hi", "llm.model_name": "m"}
FAILED = {"status": {"code": 2, "message": "down"}}


def runs_of(*spans: dict[str, Any], seed: int | None = None) -> list[AgentRun]:
    several = list(spans)
    if seed is not None:
        random.Random(seed).shuffle(several)
    forest = SpanForest(read_span)
    forest.take(read_otlp(line(*several).encode(), form="json", place="a"))
    runs = forest.runs(whole_trace=True)
    assert {one.reason for one in forest.refused} <= {RefusedTrace.NO_RUN}
    return runs


def said(role: str, *parts: Any) -> str:
    texts = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return json.dumps([{"role": role, "parts": texts}])


def chat(number: int, asked: str = "", answer: str = "", **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"gen_ai.usage.total_tokens": number}
    if asked:
        given |= {"gen_ai.input.messages": said("user", asked)}
    if answer:
        given |= {"gen_ai.output.messages": said("assistant", answer)}
    return span(number, "chat", attributes=given | fields.pop("attributes", {}), **fields)


def tool(number: int, name: str, **fields: Any) -> dict[str, Any]:
    given = {"gen_ai.tool.name": name, **fields.pop("attributes", {})}
    return span(number, "execute_tool", attributes=given, **fields)


def within(number: int, seconds: int, **attributes: Any) -> dict[str, Any]:
    """Return a span of OpenInference that lasts so many seconds."""
    found = span(number, parent=attributes.pop("parent", 1), attributes=attributes)
    found["endTimeUnixNano"] = str(int(found["startTimeUnixNano"]) + seconds * 10**9)
    return found


def named(number: int, name: str, **fields: Any) -> dict[str, Any]:
    return agent(number, attributes={"gen_ai.agent.name": name, **fields.pop("attributes", {})}, **fields)


def kinds(run: AgentRun) -> list[tuple[str, str]]:
    return [(step.kind, step.name) for step in run.steps]


INNER = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 14, "operation.cost": 0.5}


@pytest.mark.parametrize(
    ("spans", "turns", "tokens"),
    [
        ([within(2, 5, **WRAPPER), chat(3, "hi", "ho", parent=2)], [("hi", "ho")], 3),
        ([chat(2, "hi", "ho"), chat(3, parent=2)], [("hi", "ho")], 2),
        ([chat(2, "hi", "ho"), span(3, parent=2), chat(4, "HI", "HO", parent=3)], [("hi", "ho")], 2),
        (
            [within(2, 5, **WRAPPER), chat(3, "hi", "ho", parent=2), chat(4, "hi", "hey", parent=2)],
            [("hi", "ho"), ("hi", "hey")],
            7,
        ),
        ([chat(2, "hi", "ho"), span(3, attributes={KIND: "LLM", "output.value": "x"})], [("hi", "ho")], 2),
        ([within(2, 1, **WRAPPER)], [("hi", "")], None),
        ([chat(2, "hi"), tool(3, "f", parent=2), chat(4, "ho", parent=3)], [("hi", ""), ("ho", "")], 6),
    ],
    ids=[
        "a wrapper of one call", "seen twice", "seen twice with a span between", "a wrapper of two calls",
        "no call of a model", "a model alone", "a call within a tool",
    ],
)  # fmt: skip
def test_each_call_of_a_model_is_one_turn(
    spans: list[dict[str, Any]], turns: list[tuple[str, str]], tokens: int | None
) -> None:
    for seed in range(4):
        (run,) = runs_of(agent(1), *spans, seed=seed)
        assert [(step.asked, step.answered) for step in run.steps if step.kind == "turn"] == turns
        assert run.tokens == tokens


def test_what_only_the_inner_span_of_a_call_says_is_taken_over() -> None:
    asked = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}
    outer = within(2, 9, **{KIND: "LLM"}, **asked)
    (run,) = runs_of(agent(1), outer, span(3, "chat", parent=2, attributes=INNER))
    (step,) = run.steps
    assert (step.asked, step.model, step.tokens, step.cost_usd, step.name) == ("hi", "m", 114, 0.5, "m")


def test_a_call_fails_by_the_span_within_it_where_nothing_answered() -> None:
    (run,) = runs_of(agent(1), within(2, 9, **WRAPPER), chat(3, "hi", parent=2, **FAILED))
    assert (run.steps[0].error, run.error) == ("down", "down")
    (again,) = runs_of(agent(1), chat(2, "hi", "ho"), chat(3, parent=2, **FAILED))
    assert (again.steps[0].error, again.reply) == (None, "ho")


def test_a_call_of_a_tool_that_two_spans_tell_of_is_one() -> None:
    given = {"gen_ai.tool.call.id": "c"}
    for inner in (tool(3, "look", parent=2), tool(3, "mcp", parent=2, attributes=given)):
        (run,) = runs_of(agent(1), tool(2, "look", attributes=given), inner)
        assert kinds(run) == [("tool", "look")]
    (run,) = runs_of(agent(1), tool(2, "look"), tool(3, "inner", parent=2), tool(4, "(merged tools)"))
    assert kinds(run) == [("tool", "look"), ("tool", "inner")]


def test_agents_that_only_hold_agents_are_one_run_with_the_first_name_that_a_person_gave() -> None:
    outer = [within(1, 90, parent=None, **{KIND: "AGENT"}), span(2)]
    first = [within(3, 3, parent=2, **{KIND: "AGENT", "agent.name": "triage"}), chat(4, "hi", parent=3)]
    second = [within(10, 5, **{KIND: "AGENT", "agent.name": "researcher"}), chat(11, "hi", "ho", parent=10)]
    (run,) = runs_of(*outer, *first, *second, seed=3)
    assert (run.key[1][-1], run.agent.name, run.parent, len(run.steps)) == ("1", "triage", None, 2)
    assert (run.prompt, run.reply, run.tokens) == ("hi", "ho", 15)


def test_agents_at_the_same_time_are_runs_of_their_own() -> None:
    outer = within(1, 90, parent=None, **{KIND: "AGENT"})
    both = [within(n, 5, **{KIND: "AGENT", "agent.name": f"a{n}"}) for n in (3, 4)]
    main, *inner = runs_of(outer, *both, chat(5, "hi", "ho", parent=3), chat(6, "HI", "HO", parent=4))
    assert kinds(main) == [("agent", "a3"), ("agent", "a4")]
    assert [(run.agent.name, run.parent, run.tokens) for run in inner] == [
        ("a3", main.key, 5),
        ("a4", main.key, 6),
    ]
    assert [step.answered for step in main.steps] == ["ho", "HO"]


def test_an_agent_that_a_tool_calls_is_a_run_of_its_own() -> None:
    main, inner = runs_of(
        named(1, "support", parent=None, attributes={"session.id": "s", "tfgrpo.policy_version": "v1",
                                                     "tfgrpo.task_status": "failed"}),
        chat(2, "Where?", attributes={"gen_ai.output.messages": said("assistant", {
            "type": "tool_call", "id": "c", "name": "ask", "arguments": {"about": "x"}})}),
        tool(3, "ask", attributes={"gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": "there"}),
        span(4, parent=3),
        named(5, "helper", parent=4, attributes={"enduser.id": "u"}),
        chat(6, "x?", "there", parent=5),
        chat(7, "Where?", "There."),
        seed=5,
    )  # fmt: skip
    assert kinds(main) == [("turn", "m"), ("agent", "ask"), ("turn", "m")]
    assert (main.steps[1].asked, main.steps[1].answered) == ('{"about":"x"}', "there")
    assert (main.tokens, main.reply, main.user) == (9, "There.", "u")
    assert (inner.agent.name, inner.parent, inner.tokens, inner.reply) == ("helper", main.key, 6, "there")
    assert (inner.session, inner.notes) == ("s", {"policy_version": "v1"})


def test_turns_outside_of_all_agents_are_a_run_of_the_root() -> None:
    root, inner = runs_of(
        span(1, parent=None, name="graph"),
        chat(2, "What?", "ask"),
        span(3, attributes={KIND: "TOOL", "tool.name": "ask"}),
        span(4, parent=3, attributes={KIND: "AGENT", "agent.name": "helper"}),
        chat(5, "x", "y", parent=4),
        chat(6, "What?", "y!"),
    )
    assert (root.key[1], root.agent.name, kinds(root)[1]) == ("", "graph", ("agent", "ask"))
    assert (root.prompt, root.reply, root.tokens, root.parent) == ("What?", "y!", 8, None)
    assert (inner.agent.name, inner.parent, inner.tokens) == ("helper", root.key, 5)
    (alone,) = runs_of(agent(2), chat(3, "a", parent=2), span(1, parent=None))
    assert alone.parent is None


def test_a_model_that_was_asked_again_within_its_span_has_two_turns() -> None:
    holds = within(2, 9, **{KIND: "LLM", "llm.model_name": "m", "output.value": "Sunny.",
                            "llm.token_count.total": 7})  # fmt: skip
    (run,) = runs_of(agent(1), holds, span(3, parent=2, attributes={KIND: "TOOL", "tool.name": "look"}))
    assert [(step.kind, step.answered, step.tokens) for step in run.steps] == [
        ("turn", "", 7), ("tool", "", None), ("turn", "Sunny.", None),
    ]  # fmt: skip


def call(name: str, arguments: Mapping[str, Any], id_: str = "") -> dict[str, Any]:
    return {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}


@pytest.mark.parametrize("ids", [("c1", "c2"), ("", "")])
def test_spans_and_messages_of_calls_belong_together_by_id_or_else_by_arguments_or_order(
    ids: tuple[str, str],
) -> None:
    calls = [call("look", {"city": city}, id_) for city, id_ in zip(("Paris", "Rome"), ids, strict=True)]
    results = [{"type": "tool_call_response", "id": "", "response": text} for text in ("20", "25")]
    before = [{"role": "user", "parts": [{"type": "text", "content": "Well?"}]},
              {"role": "assistant", "parts": calls}, {"role": "tool", "parts": results}]  # fmt: skip
    first = chat(2, "Well?", attributes={"gen_ai.output.messages": said("assistant", *calls)})
    last = chat(9, "", "Warm.", attributes={"gen_ai.input.messages": json.dumps(before)})
    spans = [tool(3, "look", attributes={"gen_ai.tool.call.arguments": '{"city":"Rome"}'}), tool(4, "look")]
    (run,) = runs_of(agent(1), first, *spans, last)
    found = [(step.asked, step.answered) for step in run.steps if step.kind == "tool"]
    assert found == [('{"city":"Rome"}', "25"), ('{"city":"Paris"}', "20")]
    (told,) = runs_of(agent(1), first, last)
    assert [(s.asked, s.answered, s.ended) for s in told.steps if s.kind == "tool"] == [
        ('{"city":"Paris"}', "20", True), ('{"city":"Rome"}', "25", True),
    ]  # fmt: skip
    (cut,) = runs_of(agent(1), first)
    assert [step.ended for step in cut.steps if step.kind == "tool"] == [False, False]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("Paris", "Paris"),
        ('{"args": [], "kwargs": {"city": "Rome"}, "sanitize_inputs_outputs": true}', '{"city":"Rome"}'),
        ('{"kwargs": {"city": "Paris"}}', '{"city":"Paris"}'),
        ('{"args": ["Paris"], "kwargs": {}}', "Paris"),
        ('{"args": ["Paris"], "kwargs": {"unit": "C"}}', '{"args":["Paris"],"kwargs":{"unit":"C"}}'),
        ('{"city": "Rome"}', '{"city":"Rome"}'),
    ],
)
def test_arguments_of_a_tool_come_out_of_their_wrapping(given: str, arguments: str) -> None:
    (run,) = runs_of(agent(1), span(2, attributes={KIND: "TOOL", "input.value": given}))
    assert run.steps[0].asked == arguments


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("20", "20"),
        ('{"blocks": [{"block_type": "text", "text": "20"}], "tool_name": "look", "is_error": false}', "20"),
        ('{"id": "c", "name": "look", "response": {"result": "20"}}', "20"),
        ('{"result": 20, "unit": "C"}', '{"result": 20, "unit": "C"}'),
    ],
)
def test_results_of_a_tool_come_out_of_their_wrapping(result: str, text: str) -> None:
    (run,) = runs_of(agent(1), span(2, attributes={KIND: "TOOL", "output.value": result}))
    assert run.steps[0].answered == text


@pytest.mark.parametrize(
    "value",
    [
        "weather?",
        {"task": "weather?", "stream": False, "images": None},
        {"tools": ["<FunctionTool>"], "user_msg": "weather?"},
        [["user", "weather?"]],
        {"messages": [["system", "Be kind."], ["human", "weather?"]]},
        {"messages": [{"type": "human", "content": "weather?"}, {"type": "ai", "content": "Sunny."}]},
        {"messages": [{"lc": 1, "kwargs": {"type": "human", "content": "weather?"}}]},
    ],
)
def test_what_an_agent_was_asked_comes_out_of_its_wrapping_and_a_message_says_it_first(value: Any) -> None:
    given = {KIND: "AGENT", "input.value": value if isinstance(value, str) else json.dumps(value)}
    top = span(1, parent=None, attributes=given)
    assert runs_of(top, tool(2, "look"))[0].prompt == "weather?"
    assert runs_of(top, chat(2, "In Paris?", "Sunny."))[0].prompt == "In Paris?"
    assert runs_of(top, chat(2, "New task:\nweather?\nBe quick.", "Sunny."))[0].prompt == "weather?"


def test_a_run_fails_by_its_last_step_unless_something_answers_after_it() -> None:
    root = span(1, parent=None, name="POST /chat")
    (outage,) = runs_of(root, chat(2, "hi", **FAILED))
    assert (outage.error, outage.reply) == ("down", "")
    (again,) = runs_of(root, chat(2, "hi", **FAILED), chat(3, "hi", "ho"))
    assert (again.error, again.reply) == (None, "ho")
    answered = {KIND: "CHAIN", "output.value": "We are closed."}
    (caught,) = runs_of(span(1, parent=None, attributes=answered), chat(2, "hi", **FAILED))
    assert (caught.error, caught.reply) == (None, "We are closed.")


@pytest.mark.parametrize("seed", range(25))
def test_a_trace_is_the_same_in_any_order_of_arrival(seed: int) -> None:
    chance = random.Random(seed)
    spans = [span(1, parent=None)]
    for number in range(2, chance.randint(3, 30)):
        parent = chance.randrange(1, number)
        spans.append(chance.choice((
            span(number, parent=parent),
            named(number, f"a{number}", parent=parent),
            chat(number, f"q{number}", f"r{number}" * chance.randrange(2), parent=parent),
            tool(number, f"f{chance.randrange(3)}", parent=parent),
        )))  # fmt: skip
    expected = runs_of(*spans) if any("chat" in one["name"] for one in spans) else None
    if expected is not None:
        assert all(runs_of(*spans, seed=order) == expected for order in range(8))
        assert sum(run.tokens or 0 for run in expected) <= sum(range(2, 31))
