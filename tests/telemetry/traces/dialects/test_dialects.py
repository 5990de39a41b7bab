"""What the dialects have beside the runs that are recorded."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.otlp_spans import line, span

from pytest_tfgrpo.telemetry.traces.dialects.dialects import identity, read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp
from pytest_tfgrpo.telemetry.traces.turns import (
    RefusedTrace,
    SpanEvent,
    SpanReading,
    TraceCall,
    TraceSpan,
    TraceStep,
)

KIND, ASKED, ANSWERED = "openinference.span.kind", "llm.input_messages", "llm.output_messages"


def reading_of(**attributes: Any) -> SpanReading:
    (found,) = read_otlp(line(span(1, attributes=attributes)).encode(), form="json", place="a")
    assert isinstance(found, TraceSpan)
    return read_span(found)


def step_of(**attributes: Any) -> TraceStep:
    step = reading_of(**attributes).step
    assert step is not None
    return step


def test_openinference_has_parts_thoughts_and_cost() -> None:
    step = step_of(**{
        KIND: "LLM",
        f"{ASKED}.0.message.role": "user",
        f"{ASKED}.0.message.contents.1.message_content.text": "this?",
        f"{ASKED}.0.message.contents.0.message_content.text": "What is",
        f"{ASKED}.0.message.contents.2.message_content.type": "image",
        f"{ANSWERED}.0.message.role": "assistant",
        f"{ANSWERED}.0.message.contents.0.message_content.type": "reasoning",
        f"{ANSWERED}.0.message.contents.0.message_content.text": "A cat, I think.",
        f"{ANSWERED}.0.message.contents.1.message_content.type": "text",
        f"{ANSWERED}.0.message.contents.1.message_content.text": "A cat.",
        f"{ANSWERED}.0.message.function_call_name": "purr",
        f"{ANSWERED}.0.message.function_call_arguments_json": '{"b":1,"a":2}',
        "llm.cost.total": 0.5,
    })  # fmt: skip
    assert (step.asked, step.answered, step.thoughts) == ("What is\nthis?", "A cat.", ("A cat, I think.",))
    assert (step.calls, step.cost_usd) == ((TraceCall("", "purr", '{"a":2,"b":1}'),), 0.5)


def test_messages_come_in_the_order_of_their_places() -> None:
    table = {f"{ASKED}.{at}.message.{key}": value for at in (10, 9, 2) for key, value in
             {"role": "user", "content": f"number {at}"}.items()}  # fmt: skip
    assert step_of(**{KIND: "LLM", **table}).asked == "number 10"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Hi", "Hi"),
        ('{"question": "Hi"}', "Hi"),
        ('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x"}]}', "Hi"),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ("{not JSON", "{not JSON"),
    ],
)
def test_what_went_into_an_agent_is_a_text_however_it_is_wrapped(value: str, text: str) -> None:
    for kind in ("AGENT", "CHAIN"):
        assert reading_of(**{KIND: kind, "input.value": value}).asked == text


@pytest.mark.parametrize("identity", [{}, {"id": "a"}])
def test_calls_without_an_id_or_with_one_id_get_their_results_in_order(identity: dict[str, str]) -> None:
    calls = [{"type": "tool_use", "name": "f", "input": n, **identity} for n in range(3)]
    results = [{"type": "tool_result", "content": f"result {n}", **identity} for n in range(3)]
    said = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    step = step_of(**{"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(said)})
    assert [(call.arguments, call.result) for call in step.calls] == [
        (f"{n}", f"result {n}") for n in range(3)
    ]


def test_evaluations_in_attributes_are_outcomes() -> None:
    first, second = reading_of(**{
        KIND: "CHAIN",
        "evaluations.0.evaluation.name": "helpful",
        "evaluations.0.evaluation.score": 0.5,
        "annotations.0.annotation.name": "tone",
        "annotations.0.annotation.label": "rude",
        "annotations.0.annotation.explanation": "It shouts.",
    }).outcomes  # fmt: skip
    assert (first.name, first.value, first.label) == ("helpful", 0.5, "")
    assert (second.name, second.value, second.label, second.explanation) == (
        "tone", None, "rude", "It shouts.",
    )  # fmt: skip


def test_names_beside_the_places_of_a_list_are_left_out() -> None:
    step = step_of(**{
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": '[{"type": "text", "text": "Hi"}]',
        "gen_ai.prompt.prompt_filter_results": "[]",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "[1, 2]",
        "gen_ai.completion.0.reasoning": "A list.",
    })  # fmt: skip
    assert (step.asked, step.answered, step.thoughts) == ("Hi", "[1, 2]", ("A list.",))


def test_a_workflow_says_what_went_in_where_no_message_does() -> None:
    given = {"args": [], "kwargs": {"question": "Why?"}}
    root = span(1, parent=None, attributes={
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": json.dumps(given),
        "traceloop.entity.output": '"So."',
    })  # fmt: skip
    forest = SpanForest(read_span)
    asked = {"llm.request.type": "chat", "llm.request.model": "m", "traceloop.span.kind": "task"}
    turn = span(2, attributes=asked)
    forest.take(read_otlp(line(root, turn).encode(), form="json", place="a"))
    (run,) = forest.runs(whole_trace=True)
    assert (run.prompt, run.reply) == ("Why?", "So.")
    failed = replace(run, agent=replace(run.agent, error="the tool is down"))
    assert failed.reply == ""


def test_an_observation_of_langfuse_has_a_level_and_costs() -> None:
    start = "langfuse.observation."
    step = step_of(**{
        f"{start}type": "generation",
        f"{start}input": "Why?",
        f"{start}output": '{"role": "assistant", "content": "So."}',
        f"{start}level": "ERROR",
        f"{start}cost_details": '{"input": 0.25, "output": 0.5}',
        f"{start}usage_details": '{"input": 3, "output": 4, "input_cached": 2}',
    })  # fmt: skip
    assert (step.asked, step.answered, step.error) == ("Why?", "", "_OTHER")
    assert (step.cost_usd, step.tokens) == (0.75, 7)
    said = {f"{start}type": "generation", f"{start}level": "ERROR", f"{start}status_message": "overloaded"}
    assert step_of(**said).error == "overloaded"


def test_a_span_of_two_dialects_is_read_in_the_one_with_its_messages() -> None:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}])
    both = {KIND: "LLM", "gen_ai.operation.name": "chat", "gen_ai.input.messages": said}
    assert step_of(**both).asked == "Hi"
    indexed = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hi",
    }
    assert step_of(**indexed).asked == "Hi"
    assert (
        step_of(**{"gen_ai.operation.name": "invoke_agent", "traceloop.span.kind": "workflow"}).kind
        == "agent"
    )


@pytest.mark.parametrize(
    "damage",
    [
        {f"{ASKED}.0.message": "a text", f"{ASKED}.0.message.role": "user"},
        {f"{ASKED}.0.message.role": "user", f"{ASKED}.0.message": "a text"},
        {f"{ASKED}.0." + "a." * 100 + "b": 1},
        {f"{ASKED}.0": "a text"},
        {f"{ASKED}.0.message.role": "user", f"{ASKED}.0.message.contents": 7},
    ],
)
def test_messages_that_the_dialect_does_not_have_are_malformed(damage: dict[str, Any]) -> None:
    forest = SpanForest(read_span)
    forest.take(read_otlp(line(span(2, attributes={KIND: "LLM", **damage})).encode(), form="json", place="a"))
    assert forest.runs(whole_trace=True) == []
    assert [one.reason for one in forest.refused] == [RefusedTrace.MALFORMED]


def test_the_last_exception_of_a_span_is_its_error() -> None:
    attributes = {"gen_ai.operation.name": "chat"}
    (found,) = read_otlp(line(span(1, attributes=attributes)).encode(), form="json", place="a")
    assert isinstance(found, TraceSpan)
    said = ("503, tried again", "503, gave up", "")
    events = tuple(SpanEvent("exception", n, {"exception.message": text}) for n, text in enumerate(said))
    step = read_span(replace(found, failed=True, message="failed", events=events)).step
    assert step is not None
    assert step.error == "503, gave up"


def test_a_user_and_a_session_of_a_span_come_before_those_of_its_resource() -> None:
    said = {"user.id": "ada", "session.id": "s1"}
    found = identity(said, {"enduser.id": "service", "user.id": "service", "session.id": "s0"})
    assert (found.user, found.session) == ("ada", "s1")
    assert identity({}, {"user.id": "service"}).user == "service"


@pytest.mark.parametrize(
    ("failed", "content", "error"), [(True, "boom", "own"), (False, "boom", "boom"), (False, "", "_OTHER")]
)
def test_a_tool_whose_message_says_that_it_failed_has_failed(failed: bool, content: str, error: str) -> None:
    result = {"type": "tool", "data": {"tool_call_id": "c1", "content": content, "status": "error"}}
    (step,) = [
        read_span(
            TraceSpan(
                key=("a" * 32, "b" * 16), parent="", name="t", start_ns=1, end_ns=2, failed=failed,
                message="own" if failed else "",
                attributes={"openinference.span.kind": "TOOL", "output.value": json.dumps(result)},
            )
        ).step
    ]  # fmt: skip
    assert step is not None
    assert (step.error, step.answered, step.call) == (error, "", "c1")
