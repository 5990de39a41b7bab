"""The dialect of OpenTelemetry's semantic conventions for generative AI.

https://github.com/open-telemetry/semantic-conventions-genai; messages are attributes since 1.37, and events
of the span before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.messages import (
    ModelExchange,
    arguments,
    conversation,
    messages,
    parsed,
    said_by_tool,
    text,
)
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, SpanReading, TraceOutcome, TraceSpan, TraceStep

KINDS: Mapping[str, Literal["agent", "turn", "tool"]] = MappingProxyType(
    {
        "invoke_agent": "agent",
        "chat": "turn",
        "generate_content": "turn",
        "text_completion": "turn",
        "execute_tool": "tool",
    }
)
"""By ``gen_ai.operation.name``."""
_NAMES = {"agent": "gen_ai.agent.name", "turn": "gen_ai.request.model", "tool": "gen_ai.tool.name"}
_INPUTS = ("gen_ai.input.messages", "pydantic_ai.all_messages")
"""Attributes with the messages of the user; the second is all that pydantic-ai gives its agents' spans."""
RESULT = "gen_ai.evaluation.result"
"""Event of an evaluation."""
_RESULT_KEYS = {"gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"}
_DETAILS = "gen_ai.client.inference.operation.details"
"""Event that holds messages as attributes do."""
_ANSWERED, _TOOL_ASKED = "gen_ai.choice", "gen_ai.tool.message"
_ASKED = MappingProxyType(
    {"gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant", _TOOL_ASKED: "tool"}
)
"""Roles by events that hold one message each, before 1.37."""
COSTS = (
    "gen_ai.usage.cost",
    "gen_ai.cost.total_cost",
    "operation.cost",
    "gen_ai.usage.cost_usd",
    "llm.cost.total",
)
"""Attributes with dollars, as frameworks name them: the conventions have none."""
_TOTAL_TOKENS = ("gen_ai.usage.total_tokens",)
_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.aggregated_usage.input_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.output_tokens"),
)
_LARGEST = 2.0**53
_OTHER = "_OTHER"
"""The conventions' error type where there is no better one."""


def read_genai(span: TraceSpan) -> SpanReading:
    """Return the step and the outcomes of a span; raises ValueError, TypeError, KeyError or AttributeError
    for messages that are not as the conventions have them."""
    operation = span.attributes.get("gen_ai.operation.name")
    kind = KINDS.get(operation) if isinstance(operation, str) else None
    step = None if kind is None else _step(span, kind)
    return SpanReading(step=step, outcomes=outcomes_of(span))


def outcomes_of(span: TraceSpan) -> tuple[TraceOutcome, ...]:
    """Return the evaluations among the events of a span."""
    if not span.events:
        return ()
    return tuple(
        TraceOutcome(
            text(event.attributes.get("gen_ai.evaluation.name")),
            event.attributes.get("gen_ai.evaluation.score.value"),
            event.at_ns,
            span.place,
            text(event.attributes.get("gen_ai.evaluation.score.label")),
            text(event.attributes.get("gen_ai.evaluation.explanation")),
        )
        for event in span.events
        if event.name == RESULT and not _RESULT_KEYS.isdisjoint(event.attributes)
    )


def amount(attributes: Mapping[str, Json], keys: Iterable[str]) -> float | None:
    """Return the first number under `keys` that is finite and not negative."""
    for key in keys:
        if key in attributes:
            found = attributes[key]
            if found.__class__ in (int, float) and 0 <= found < _LARGEST:
                return float(found)
    return None


def tokens_of(
    attributes: Mapping[str, Json], *, total: Sequence[str], parts: Sequence[Sequence[str]]
) -> int | None:
    """Return the tokens of a call: their total, or else the sum of those read and written."""
    said = amount(attributes, total)
    if said is None:
        found = [one for keys in parts if (one := amount(attributes, keys)) is not None]
        said = sum(found) if found else None
    return None if said is None else int(said)


def _step(span: TraceSpan, kind: Literal["agent", "turn", "tool"]) -> TraceStep:
    error = error_of(span)
    table = span.attributes
    asked, answered = _of_tool(span) if kind == "tool" else ("", "")
    said = ModelExchange(asked, answered) if kind == "tool" else conversation(*messages_of(span))
    return TraceStep(
        kind=kind,
        name=text(table.get(_NAMES[kind])),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=said.asked,
        answered="" if error is not None else said.answered,
        conversation=text(table.get("gen_ai.conversation.id")),
        model=text(table.get("gen_ai.response.model")) or text(table.get("gen_ai.request.model")),
        temperature=amount(table, ("gen_ai.request.temperature",)),
        tokens=tokens_of(table, total=_TOTAL_TOKENS, parts=_TOKENS),
        cost_usd=amount(table, COSTS),
        thoughts=said.thoughts,
        call=text(table.get("gen_ai.tool.call.id")) if kind == "tool" else "",
        calls=said.calls,
        answers=said.answers,
        response=text(table.get("gen_ai.response.id")),
    )


def error_of(span: TraceSpan) -> str | None:
    """Return message, or else type, of a span's error; None where it has none."""
    kind = text(span.attributes.get("error.type"))
    if not span.failed and not kind:
        return None
    said = [
        text(event.attributes.get("exception.message")) for event in span.events if event.name == "exception"
    ]
    return next(filter(None, (*reversed(said), span.message, kind)), _OTHER)


def messages_of(span: TraceSpan) -> tuple[list[Json], list[Json]]:
    """Return the messages to a model and those of its answer, of the attributes and the events of a span."""
    tables = [span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)]
    asked = [one for table in tables for name in _INPUTS for one in messages(table.get(name))]
    answered = [one for table in tables for one in messages(table.get("gen_ai.output.messages"))]
    for event in span.events:
        if event.name == _ANSWERED:
            answered.append(_old_message("assistant", event, "message"))
        elif event.name in _ASKED:
            asked.append(_old_message(_ASKED[event.name], event, "content"))
    return asked, answered


def _old_message(role: str, event: SpanEvent, key: str) -> dict[str, Json]:
    """Return the message that an event before 1.37 is."""
    found = parsed(event.attributes.get(key))
    if isinstance(found, Mapping) and ("content" in found or "tool_calls" in found):
        return {"content": None, **found, "role": role}
    calls = parsed(event.attributes.get("tool_calls"))
    message = {"role": role, "content": found, "tool_calls": calls}
    identity = event.attributes.get("id")
    return message if identity is None else message | {"tool_call_id": identity}


def _of_tool(span: TraceSpan) -> tuple[str, str]:
    """Return arguments, as JSON, and result of a call."""
    asked: Json = span.attributes.get("gen_ai.tool.call.arguments")
    result: Json = span.attributes.get("gen_ai.tool.call.result")
    for event in span.events:
        if event.name == _TOOL_ASKED and asked is None:
            asked = event.attributes.get("content")
        elif event.name == _ANSWERED and result is None:
            result = event.attributes.get("message")
    return arguments(asked), said_by_tool(parsed(result))
