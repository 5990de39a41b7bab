"""The dialect of OpenTelemetry's semantic conventions for generative AI.

https://github.com/open-telemetry/semantic-conventions-genai; messages are attributes since 1.37, and events
of the span before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.traces.turns import SpanReading, TraceOutcome, TraceSpan, TraceStep

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
_RESULT = "gen_ai.evaluation.result"
_DETAILS = "gen_ai.client.inference.operation.details"
"""Event that holds messages as attributes do."""
_ASKED, _ANSWERED = "gen_ai.user.message", "gen_ai.choice"
"""Events that hold one message each, before 1.37."""
_TOOL_ASKED = "gen_ai.tool.message"
_OTHER = "_OTHER"
"""The conventions' error type where there is no better one."""


def read_genai(span: TraceSpan) -> SpanReading:
    """Return the step and the outcomes of a span; raises ValueError, TypeError, KeyError or AttributeError
    for messages that are not as the conventions have them."""
    operation = span.attributes.get("gen_ai.operation.name")
    kind = KINDS.get(operation) if isinstance(operation, str) else None
    outcomes = tuple(
        TraceOutcome(
            str(event.attributes.get("gen_ai.evaluation.name", "")),
            event.attributes["gen_ai.evaluation.score.value"],
            event.at_ns,
            span.place,
        )
        for event in span.events
        if event.name == _RESULT and "gen_ai.evaluation.score.value" in event.attributes
    )
    return SpanReading(step=None if kind is None else _step(span, kind), outcomes=outcomes)


def is_agent(attributes: Mapping[str, Json]) -> bool:
    """Return whether a span with these attributes is an agent's."""
    return attributes.get("gen_ai.operation.name") == "invoke_agent"


def _step(span: TraceSpan, kind: Literal["agent", "turn", "tool"]) -> TraceStep:
    error = _error(span)
    asked, answered = _of_tool(span) if kind == "tool" else _of_model(span)
    return TraceStep(
        kind=kind,
        name=_text(span.attributes.get(_NAMES[kind])),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=asked,
        answered="" if error is not None else answered,
        conversation=_text(span.attributes.get("gen_ai.conversation.id")),
    )


def _error(span: TraceSpan) -> str | None:
    """Return message, or else type, of a span's error; None where it has none."""
    kind = _text(span.attributes.get("error.type"))
    if not span.failed and not kind:
        return None
    said = [
        _text(event.attributes.get("exception.message")) for event in span.events if event.name == "exception"
    ]
    return next(filter(None, (*reversed(said), span.message, kind)), _OTHER)


def _of_model(span: TraceSpan) -> tuple[str, str]:
    """Return the last text of the user, and the text of the model."""
    tables = [span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)]
    asked = [text for table in tables for name in _INPUTS for text in _messages(table.get(name), "user")]
    answered = [text for table in tables for text in _messages(table.get("gen_ai.output.messages"), "")]
    for event in span.events:
        if event.name == _ASKED:
            asked += filter(None, [_content(_parsed(event.attributes.get("content")))])
        elif event.name == _ANSWERED:
            answered += filter(None, [_content(_parsed(event.attributes.get("message")))])
    return asked[-1] if asked else "", "\n".join(answered)


def _of_tool(span: TraceSpan) -> tuple[str, str]:
    """Return arguments, as JSON, and result of a call."""
    asked: Json = span.attributes.get("gen_ai.tool.call.arguments")
    result: Json = span.attributes.get("gen_ai.tool.call.result")
    for event in span.events:
        if event.name == _TOOL_ASKED and asked is None:
            asked = event.attributes.get("content")
        elif event.name == _ANSWERED and result is None:
            result = event.attributes.get("message")
    arguments = _parsed(asked)
    as_json = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return "" if arguments is None else as_json, _content(_parsed(result))


def _messages(found: Json, role: str) -> Iterator[str]:
    """Yield the texts of the messages of a role, or of any, that have some."""
    messages = _parsed(found)
    for message in () if messages is None or isinstance(messages, str) else messages:  # a text is cut short
        parts = message["parts"] if "parts" in message else message["content"]
        text = _content(parts) if role in ("", message["role"]) else ""
        if text:
            yield text


def _content(found: Json) -> str:
    """Return the text of a message: its own, or that of its parts."""
    if isinstance(found, str):
        return found.strip()
    if isinstance(found, Mapping):  # the message of an older event, or a single part
        return _content(found["content"]) if "content" in found else _part(found)
    if isinstance(found, Iterable):
        return "\n".join(filter(None, map(_part, found))).strip()
    return "" if found is None else json.dumps(found)


def _part(part: Json) -> str:
    """Return the text of a part, by whatever name it has; calls and files have none."""
    if isinstance(part, str):
        return part
    if part.get("type", "text") != "text":
        return ""
    return _text(part.get("content", part.get("text")))


def _parsed(found: Json) -> Json:
    """Return what an attribute holds: structured itself, as JSON, or a plain text."""
    if isinstance(found, str) and found[:1] in ("[", "{"):
        try:
            return json.loads(found)
        except (ValueError, RecursionError):
            return found
    return found


def _text(found: Json) -> str:
    return found if isinstance(found, str) else ""
