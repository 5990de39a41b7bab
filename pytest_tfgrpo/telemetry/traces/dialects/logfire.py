"""The dialect of Logfire's instrumentation of OpenAI's agents: names in templates, messages as events.

https://logfire.pydantic.dev/docs/integrations/llms/openai/; its other spans follow the conventions for
generative AI.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai import COSTS, amount, error_of, messages_of, tokens_of
from pytest_tfgrpo.telemetry.traces.messages import (
    ModelExchange,
    answers_in,
    arguments,
    conversation,
    is_object,
    messages,
    parsed,
    said_by_tool,
    text,
)
from pytest_tfgrpo.telemetry.traces.turns import SpanReading, TraceSpan, TraceStep

TEMPLATE = "logfire.msg_template"
KINDS: Mapping[str, Literal["agent", "turn", "tool"]] = MappingProxyType(
    {
        "OpenAI Agents trace: {name}": "agent",
        "Agent run: {name!r}": "agent",
        "Function: {name}": "tool",
        "Handoff: {from_agent} → {to_agent}": "tool",
        "Responses API with {gen_ai.request.model!r}": "turn",
        "Chat completion with {gen_ai.request.model!r}": "turn",
    }
)
"""By template of the message."""
_NO_NAME = "Agent workflow"
"""What the framework calls a workflow that nobody named."""
_ROLES = {"gen_ai.choice": "assistant"} | {
    f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")
}
_TOKENS = (("gen_ai.usage.input_tokens",), ("gen_ai.usage.output_tokens",))


def read_logfire(span: TraceSpan) -> SpanReading:
    """Return the step of a span; raises ValueError, TypeError, KeyError or AttributeError for messages that
    are not as the dialect has them."""
    table = span.attributes
    kind = KINDS[table[TEMPLATE]]
    said = ModelExchange("", "")
    if kind == "turn":
        said = conversation(*_messages(span))
    elif kind == "tool":
        said = ModelExchange(arguments(table.get("input")), said_by_tool(parsed(table.get("output"))))
    error = _error(span)
    model = text(table.get("gen_ai.response.model")) or text(table.get("gen_ai.request.model"))
    handoff = f"handoff to {text(table.get('to_agent'))}"
    name = model if kind == "turn" else text(table.get("name"))
    if name == _NO_NAME:
        name = ""
    return SpanReading(
        step=TraceStep(
            kind=kind,
            name=name or (handoff if kind == "tool" else ""),
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            error=error,
            asked=said.asked,
            answered="" if error is not None and kind == "turn" else said.answered,
            model=model if kind == "turn" else "",
            tokens=tokens_of(table, total=(), parts=_TOKENS) if kind == "turn" else None,
            cost_usd=amount(table, COSTS),
            thoughts=said.thoughts,
            calls=said.calls,
            answers=said.answers,
        )
    )


def _messages(span: TraceSpan) -> tuple[list[Json], list[Json]]:
    """Return the messages to a model and those of its answer, which are the last ones in one list."""
    asked, answered = messages_of(span)
    if asked or answered:
        return asked, answered
    if "input" in span.attributes:
        return messages(span.attributes["input"]), answers_in(parsed(span.attributes.get("output")))
    several = [_message(one) for one in messages(span.attributes.get("events"))]
    while several and several[-1]["role"] == "assistant":
        answered.insert(0, several.pop())
    return list(several), answered


def _message(event: Mapping[str, Json]) -> dict[str, Json]:
    role = _ROLES[event["event.name"]]
    inner = event["message"] if is_object(event.get("message")) else event
    message = {"role": role, "content": inner.get("content"), "tool_calls": inner.get("tool_calls")}
    return message | ({"tool_call_id": event["id"]} if role == "tool" and "id" in event else {})


def _error(span: TraceSpan) -> str | None:
    """Return the error of a span; the cause is in an attribute."""
    error = error_of(span)
    found = parsed(span.attributes.get("error"))
    if error is None or not is_object(found):
        return error
    data = found.get("data")
    cause = text(data.get("error")) if is_object(data) else ""
    return cause or text(found.get("message")) or error
