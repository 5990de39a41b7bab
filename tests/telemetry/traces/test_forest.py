"""Runs as the feedback loop reads them: whole, of whom, and with the calls that only messages tell of."""

import json
from collections.abc import Mapping
from typing import Any

from support.otlp_spans import BORN_NS, agent, evaluation, line, span

from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, RefusedTrace

S = 10**9


def forest_of(*spans: dict[str, Any]) -> SpanForest:
    forest = SpanForest(read_span)
    forest.take(read_otlp(line(*spans).encode(), form="json", place="a"))
    return forest


def run_of(*spans: dict[str, Any]) -> AgentRun:
    (run,) = forest_of(*spans).runs(whole_trace=True)
    return run


def chat(number: int, said: list[Any], answer: Any, **fields: Any) -> dict[str, Any]:
    given: Mapping[str, Any] = {
        "gen_ai.input.messages": json.dumps(said),
        "gen_ai.output.messages": json.dumps([answer]),
        **fields.pop("attributes", {}),
    }
    return span(number, "chat", attributes=given, **fields)


def message(role: str, *parts: Any) -> dict[str, Any]:
    texts = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": texts}


def test_a_run_is_closed_once_the_spans_around_it_are_there_up_to_the_root() -> None:
    inner, outer = agent(3, parent=2), span(2, parent=1)
    assert not run_of(inner, outer).closed
    assert run_of(inner, outer, span(1, parent=None)).closed
    assert run_of(agent(1)).closed


def test_session_and_user_come_from_the_agent_then_from_around_it_then_from_within() -> None:
    run = run_of(
        span(1, parent=None, attributes={"session.id": "s1", "tfgrpo.domain": "root", "user.id": 7}),
        agent(2, parent=1, attributes={"gen_ai.conversation.id": "made-up", "tfgrpo.domain": "sql"}),
        span(3, "chat", parent=2, attributes={"session.id": "s2", "tfgrpo.a": 1, "enduser.id": "x"}),
    )
    assert (run.session, run.user) == ("s1", "7")
    assert run.notes == {"domain": "sql", "a": 1}
    assert run_of(agent(1, attributes={"gen_ai.conversation.id": "c"})).session == "c"


def test_a_note_of_a_span_comes_before_that_of_any_resource() -> None:
    request = json.loads(line(agent(2, parent=1), span(1, parent=None, attributes={"tfgrpo.domain": "sql"})))
    notes = [{"key": f"tfgrpo.{key}", "value": {"stringValue": "all"}} for key in ("domain", "version")]
    request["resourceSpans"][0]["resource"] = {"attributes": notes}
    forest = SpanForest(read_span)
    forest.take(read_otlp(json.dumps(request).encode(), form="json", place="a"))
    (run,) = forest.runs()
    assert run.notes == {"domain": "sql", "version": "all"}


def test_a_trace_without_an_agent_is_one_run_of_its_root() -> None:
    spans = (
        span(1, parent=None, name="POST /ask", status={"code": 2, "message": "late"}),
        chat(2, [message("user", "When?")], message("assistant", "At noon.")),
        span(3, events=(evaluation(0.5),)),
    )
    run = run_of(*spans)
    assert (run.key, run.agent.name, run.agent.error) == ((spans[0]["traceId"], ""), "POST /ask", "late")
    assert (run.prompt, run.closed, len(run.steps)) == ("When?", True, 1)
    assert [outcome.value for outcome in run.outcomes] == [0.5]
    assert not run_of(*spans[1:]).closed
    assert forest_of(span(1, parent=None), span(2, "execute_tool")).runs(whole_trace=True) == []
    plain = forest_of(*spans)
    assert plain.runs() == []
    assert [one.reason for one in plain.refused] == [RefusedTrace.NO_RUN]


def test_model_tokens_and_cost_are_those_of_the_turns_or_else_of_the_agent() -> None:
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "operation.cost": 0.25}
    asked = {"gen_ai.request.model": "m", "gen_ai.request.temperature": 0.7}
    parent = agent(1, attributes={"gen_ai.usage.total_tokens": 99})
    run = run_of(parent, span(2, "chat", attributes={**usage, **asked}), span(3, "chat", attributes=usage))
    assert (run.model, run.temperature, run.tokens, run.cost_usd) == ("m", 0.7, 30, 0.5)
    assert run_of(parent).tokens == 99
    assert run_of(agent(1, attributes={"gen_ai.usage.input_tokens": -1})).tokens is None


def test_thoughts_of_a_model_are_apart_from_its_answer() -> None:
    thought = {"type": "reasoning", "content": "It asks for the time."}
    run = run_of(agent(1), chat(2, [message("user", "When?")], message("assistant", thought, "Now.")))
    assert (run.steps[0].thoughts, run.reply) == (("It asks for the time.",), "Now.")


def test_calls_that_only_messages_tell_of_are_steps() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "clock", "arguments": {"zone": "x", "at": 1}}
    back = {"type": "tool_call_response", "id": "c1", "response": {"hour": 12}}
    earlier = [message("user", "Hi"), message("assistant", call | {"id": "c0"}), message("assistant", "Hi!")]
    first = [*earlier, message("user", "When?")]
    second = [*first, message("assistant", call), message("tool", back)]
    run = run_of(
        agent(1), chat(2, first, message("assistant", call)), chat(5, second, message("assistant", "Noon."))
    )
    assert [(one.kind, one.name, one.asked, one.answered) for one in run.steps[1:2]] == [
        ("tool", "clock", '{"at":1,"zone":"x"}', '{"hour": 12}')
    ]
    tool = run.steps[1]
    assert (tool.start_ns - BORN_NS, tool.end_ns - BORN_NS, len(run.steps)) == (3 * S, 5 * S, 3)


def test_a_call_that_has_a_span_is_one_step() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "clock", "arguments": "{}"}
    asked = chat(2, [message("user", "When?")], message("assistant", call))
    for attributes in ({"gen_ai.tool.call.id": "c1"}, {"gen_ai.tool.name": "clock"}):
        run = run_of(agent(1), asked, span(3, "execute_tool", attributes=attributes))
        assert [step.kind for step in run.steps] == ["turn", "tool"]


def test_a_last_turn_alone_tells_the_calls_since_the_user_spoke_in_every_spelling() -> None:
    arguments: dict[str, Any] = {"x": 1}
    function = {"id": "a", "type": "function", "function": {"name": "f", "arguments": json.dumps(arguments)}}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": arguments}
    used = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "boom"}]}
    in_bedrock = {"toolUse": {"toolUseId": "a", "name": "f", "input": arguments}}
    of_bedrock = {"toolResult": {"toolUseId": "a", "content": [{"text": "boom"}]}}
    spellings: list[list[dict[str, Any]]] = [
        [
            {"role": "assistant", "content": None, "tool_calls": [function]},
            {"role": "tool", "tool_call_id": "a", "content": "boom"},
        ],
        [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [used, {"type": "text", "text": "Go on."}]},
        ],
        [{"role": "assistant", "content": [in_bedrock]}, {"role": "user", "content": [of_bedrock]}],
        [
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "id": "b", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
            {"type": "function_call_output", "call_id": "a", "output": "boom"},
        ],
    ]
    for spelling in spellings:
        run = run_of(chat(2, [message("user", "Do."), *spelling], message("assistant", "Done."), parent=None))
        assert [(one.name, one.asked, one.answered) for one in run.steps[:1]] == [("f", '{"x":1}', "boom")]


def test_an_evaluation_may_have_a_label_alone() -> None:
    result = evaluation(0.0)
    result["attributes"] = [
        {"key": f"gen_ai.evaluation.{key}", "value": {"stringValue": value}}
        for key, value in {"name": "tone", "score.label": "rude", "explanation": "It shouts."}.items()
    ]
    (outcome,) = run_of(agent(1, events=(result,))).outcomes
    assert (outcome.name, outcome.value, outcome.label, outcome.explanation) == (
        "tone", None, "rude", "It shouts.",
    )  # fmt: skip


def test_outcomes_around_the_only_run_of_a_trace_are_its_own() -> None:
    root = span(1, parent=None, events=(evaluation(0.5),))
    assert [one.value for one in run_of(root, agent(2, parent=1)).outcomes] == [0.5]
    two = forest_of(root, agent(2, parent=1), agent(3, parent=1))
    assert [run.outcomes for run in two.runs(whole_trace=True)] == [(), ()]
    assert list(two.strays) == [(root["traceId"], "")]


def test_numbers_that_no_event_can_hold_are_texts_in_the_arguments_of_a_call() -> None:
    arguments = '{"a": NaN, "b": -Infinity, "c": 1e999, "d": 0.5}'
    tool = span(2, "execute_tool", attributes={"gen_ai.tool.call.arguments": arguments})
    assert json.loads(run_of(agent(1), tool).steps[0].asked) == {
        "a": "NaN", "b": "-Infinity", "c": "1e999", "d": 0.5,
    }  # fmt: skip


def test_a_long_chain_of_spans_around_many_agents_ends() -> None:
    chain = [span(number, parent=number - 1 or None) for number in range(1, 2001)]
    agents = [agent(number, parent=2000) for number in range(3000, 4000)]
    runs = forest_of(*chain, *agents).runs(whole_trace=True)
    assert (len(runs), {run.closed for run in runs}) == (1000, {True})


def test_spans_that_are_their_own_ancestors_are_no_run() -> None:
    loop = forest_of(span(1, "chat", parent=2), agent(2, parent=1), span(3, "chat", parent=2))
    assert loop.runs(whole_trace=True) == []
    assert {one.reason for one in loop.refused} == {RefusedTrace.LOOP}


def test_the_steps_of_all_spans_are_there_without_agents_and_without_their_parents() -> None:
    forest = forest_of(
        span(3, "execute_tool", parent=99, attributes={"gen_ai.tool.name": "orphan"}),
        span(2, "execute_tool", parent=1, attributes={"gen_ai.tool.name": "first"}),
        span(1, parent=None),
        agent(5, parent=1),
        span(6, "chat", parent=5, attributes={"gen_ai.request.model": "m"}),
        span(7, parent=6),
        span(8, "chat", parent=7, attributes={"gen_ai.request.model": "seen again"}),
        span(9, "execute_tool", parent=10, attributes={"gen_ai.tool.name": "circle"}),
        span(10, parent=9),
    )
    assert [step.name for step in forest.steps()] == ["first", "orphan", "m"]
    assert [one.reason for one in forest.refused] == [RefusedTrace.LOOP, RefusedTrace.LOOP]


def test_a_call_whose_span_has_a_text_alone_has_the_arguments_of_the_message_that_asked_for_it() -> None:
    def call(id_: str, city: str) -> dict[str, Any]:
        return {"type": "tool_call", "id": id_, "name": "weather", "arguments": {"city": city}}

    def tool(number: int, id_: str) -> dict[str, Any]:
        given = {
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": id_,
            "gen_ai.tool.call.arguments": "Rome",
        }
        return span(number, "execute_tool", parent=None, attributes=given)

    said = message("model", call("c1", "Rome"), call("c2", "Rome"))
    again = message("model", call("c2", "Oslo"))
    asked = [message("user", "Well?")]
    steps = forest_of(
        chat(1, asked, said, parent=None), tool(2, "c1"), tool(3, "c2"), chat(4, asked, again, parent=None)
    ).steps()
    told = [step.asked for step in steps if step.kind == "tool"]
    assert told == ['{"city":"Rome"}', "Rome"], "an id of two calls names neither"


def test_a_run_that_lacks_a_span_is_none_and_others_go_on() -> None:
    torn = span(3, "chat", parent=2)
    torn["startTimeUnixNano"] = "soon"
    forest = forest_of(agent(1), agent(2), torn, span(5, "chat", parent=1))
    assert [run.key[1] for run in forest.runs()] == [f"{1:016x}"]
    assert {one.reason for one in forest.refused} == {RefusedTrace.MALFORMED, RefusedTrace.INCOMPLETE}
    nameless = span(7, "chat", parent=1)
    nameless["spanId"] = "?"
    forest = forest_of(agent(1), nameless)
    assert forest.runs() == []
    assert [one.reason for one in forest.refused] == [RefusedTrace.BAD_ID, RefusedTrace.INCOMPLETE]
