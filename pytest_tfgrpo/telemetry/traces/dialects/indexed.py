"""The dialect of OpenLLMetry up to 0.47, and of what followed it: messages as ``gen_ai.prompt.0.content``.

https://github.com/traceloop/openllmetry; its ``traceloop.span.kind`` says what a function of the application
is. Later ones write messages as the conventions for generative AI have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai import COSTS, amount, error_of, tokens_of
from pytest_tfgrpo.telemetry.traces.dialects.indexed_names import gathered
from pytest_tfgrpo.telemetry.traces.messages import (
    ModelExchange,
    arguments,
    conversation,
    given_to,
    json_value,
    parsed,
    said_by_tool,
    spoken,
    text,
)
from pytest_tfgrpo.telemetry.traces.turns import SpanReading, TraceSpan, TraceStep

KIND = "traceloop.span.kind"
_KINDS: Mapping[str, Literal["agent", "tool"]] = MappingProxyType({"agent": "agent", "tool": "tool"})
_ASKED, _ANSWERED = ("gen_ai.prompt", "llm.prompts"), ("gen_ai.completion", "llm.completions")
MESSAGES = tuple(f"{prefix}.0." for prefix in (*_ASKED, *_ANSWERED))
"""Starts of the attributes that a call of a model has."""
REQUEST = "llm.request.type"
"""Attribute of a call of a model, by which it is known where it has no messages."""
_TOTAL = ("llm.usage.total_tokens", "gen_ai.usage.total_tokens")
_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
)
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.response.model", "llm.request.model")


def read_indexed(span: TraceSpan) -> SpanReading:
    """Return the step of a span; raises ValueError, TypeError, KeyError or AttributeError for messages that
    are not as the dialect has them."""
    table = span.attributes
    found = table.get(KIND)
    kind = _KINDS.get(found) if isinstance(found, str) else None
    if kind is None and (table.get(REQUEST) in ("chat", "completion") or has_messages(table)):
        return SpanReading(step=_turn(span))
    asked, answered = (json_value(table.get(f"traceloop.entity.{way}")) for way in ("input", "output"))
    if kind == "tool":
        said = ModelExchange(arguments(given_to(asked)), said_by_tool(answered))
        return SpanReading(step=_function(span, kind, said))
    return SpanReading(
        step=None if kind is None else _function(span, kind, ModelExchange("", "")),
        asked=spoken(given_to(asked), "user"),
        answered=spoken(given_to(answered), "assistant"),
    )


def has_messages(attributes: Mapping[str, Json]) -> bool:
    """Return whether a span has messages of this dialect."""
    return any(key.startswith(MESSAGES) for key in attributes)


def _turn(span: TraceSpan) -> TraceStep:
    table, error = span.attributes, error_of(span)
    inputs, outputs = ([one for key in keys for one in _messages(table, key)] for keys in (_ASKED, _ANSWERED))
    said = conversation(inputs, outputs)
    model = next(filter(None, (text(table.get(key)) for key in _MODELS)), "")
    return TraceStep(
        kind="turn",
        name=text(table.get("gen_ai.request.model")) or model,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=said.asked,
        answered="" if error is not None else said.answered,
        model=model,
        temperature=amount(table, ("gen_ai.request.temperature", "llm.request.temperature")),
        tokens=tokens_of(table, total=_TOTAL, parts=_TOKENS),
        cost_usd=amount(table, COSTS),
        thoughts=said.thoughts,
        calls=said.calls,
        answers=said.answers,
    )


def _function(span: TraceSpan, kind: Literal["agent", "tool"], said: ModelExchange) -> TraceStep:
    error = error_of(span)
    return TraceStep(
        kind=kind,
        name=text(span.attributes.get("traceloop.entity.name")) or span.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=said.asked,
        answered="" if error is not None else said.answered,
    )


def _messages(attributes: Mapping[str, Json], prefix: str) -> list[Json]:
    several = (one for one in gathered(attributes, prefix) if isinstance(one, Mapping))
    return [_message(one) for one in several if not one.keys().isdisjoint(("role", "content"))]


def _message(found: Json) -> dict[str, Json]:
    """Return a message as the conventions for generative AI have it; its content may be a list as JSON."""
    content = parsed(found.get("content"))
    known = isinstance(content, list) and all(isinstance(part, Mapping) for part in content)
    message: dict[str, Json] = {
        "role": found.get("role", ""),
        "content": content if known else found.get("content"),
        "tool_calls": found.get("tool_calls") or [],
    }
    said = found.get("reasoning", found.get("reasoning_content"))
    if isinstance(said, str):
        message["reasoning_content"] = said
    return message if "tool_call_id" not in found else message | {"tool_call_id": found["tool_call_id"]}
