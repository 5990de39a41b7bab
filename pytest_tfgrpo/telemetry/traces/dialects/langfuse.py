"""The dialect of Langfuse's own libraries, which write observations as spans.

https://langfuse.com/integrations/native/opentelemetry#property-mapping; input and output of an observation
are JSON in one attribute each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai import amount, error_of, tokens_of
from pytest_tfgrpo.telemetry.traces.messages import (
    ModelExchange,
    arguments,
    conversation,
    given_to,
    is_item,
    json_value,
    parsed,
    said_by_tool,
    spoken,
    text,
)
from pytest_tfgrpo.telemetry.traces.turns import SpanReading, TraceSpan, TraceStep

KIND = "langfuse.observation.type"
_KINDS: Mapping[str, Literal["agent", "turn", "tool"]] = MappingProxyType(
    {"agent": "agent", "generation": "turn", "tool": "tool"}
)
_TOKENS = (
    ("input", "prompt_tokens", "input_tokens"),
    ("output", "completion_tokens", "output_tokens"),
)


def read_langfuse_span(span: TraceSpan) -> SpanReading:
    """Return the step of a span; raises ValueError, TypeError, KeyError or AttributeError for messages that
    have no role or content."""
    found = span.attributes.get(KIND)
    kind = _KINDS.get(found) if isinstance(found, str) else None
    given, gave = (
        json_value(span.attributes.get(f"langfuse.observation.{way}")) for way in ("input", "output")
    )
    if kind == "turn":
        return SpanReading(step=_step(span, kind, _exchange(given, gave)))
    if kind == "tool":
        return SpanReading(
            step=_step(span, kind, ModelExchange(arguments(given_to(given)), said_by_tool(gave)))
        )
    return SpanReading(
        step=None if kind is None else _step(span, kind, ModelExchange("", "")),
        asked=spoken(given_to(given), "user"),
        answered=spoken(gave, "assistant"),
    )


def _step(span: TraceSpan, kind: Literal["agent", "turn", "tool"], said: ModelExchange) -> TraceStep:
    table, error = span.attributes, _error(span)
    model = text(table.get("langfuse.observation.model.name"))
    tokens = _table(span, "usage_details")
    cost = _table(span, "cost_details")
    return TraceStep(
        kind=kind,
        name=model if kind == "turn" else span.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=said.asked,
        answered="" if error is not None else said.answered,
        model=model,
        temperature=amount(_table(span, "model.parameters"), ("temperature",)),
        tokens=tokens_of(tokens, total=("total", "total_tokens"), parts=_TOKENS),
        cost_usd=_cost(cost),
        thoughts=said.thoughts,
        calls=said.calls,
        answers=said.answers,
    )


def _exchange(given: Json, gave: Json) -> ModelExchange:
    asked, answered = list(_messages(given)), list(_messages(gave))
    if not asked and not answered:
        return ModelExchange(spoken(given, "user"), spoken(gave, "assistant"))
    said = conversation(asked, answered)
    return said._replace(
        asked=said.asked or ("" if asked else spoken(given, "user")),
        answered=said.answered or ("" if answered else spoken(gave, "assistant")),
    )


def _messages(found: Json) -> Iterator[Json]:
    """Yield messages: several, one, or those of a request."""
    if isinstance(found, Mapping) and isinstance(found.get("messages"), list):
        found = found["messages"]
    for one in found if isinstance(found, list) else [found]:
        if is_item(one) or (isinstance(one, Mapping) and "role" in one):
            yield one


def _error(span: TraceSpan) -> str | None:
    error = error_of(span)
    if error is None and span.attributes.get("langfuse.observation.level") == "ERROR":
        return text(span.attributes.get("langfuse.observation.status_message")) or "_OTHER"
    return error


def _cost(details: Mapping[str, Json]) -> float | None:
    """Return dollars: the total, or else the sum of what has a price."""
    said = amount(details, ("total",))
    found = [one for key in details if (one := amount(details, (key,))) is not None]
    return said if said is not None else sum(found) if found else None


def _table(span: TraceSpan, name: str) -> Mapping[str, Json]:
    found = parsed(span.attributes.get(f"langfuse.observation.{name}"))
    return found if isinstance(found, Mapping) else {}
