"""Which dialect a span speaks, and what every dialect has alike: session, user and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects import indexed, langfuse, logfire, openinference
from pytest_tfgrpo.telemetry.traces.dialects.genai import KINDS, messages_of, outcomes_of, read_genai
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import is_log
from pytest_tfgrpo.telemetry.traces.turns import MARK, Dialect, SpanReading, TraceSpan

SESSION_KEYS = (
    "langfuse.session.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "langsmith.trace.session_id",
    "ai.telemetry.metadata.sessionId",
    "gen_ai.conversation.id",
)
"""Attributes of a span or its resource with the id of the conversation with a user, the surest first."""
USER_KEYS = (
    "langfuse.user.id",
    "user.id",
    "enduser.id",
    "enduser.pseudo.id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId",
    "llm.user",
)
"""Attributes of a span or its resource with the id of a user, the surest first."""
_MESSAGES = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    }
)


_AGENTS = (
    ("gen_ai.operation.name", "invoke_agent"),
    (openinference.KIND, "AGENT"),
    (langfuse.KIND, "agent"),
    (indexed.KIND, "agent"),
    (logfire.TEMPLATE, "Agent run: {name!r}"),
)


class SpanIdentity(NamedTuple):
    """To whom a span belongs, and what the application noted in it."""

    session: str
    """Empty where the span has none."""
    user: str
    notes: Mapping[str, Json]
    """Attributes ``tfgrpo.*`` of the span, without that prefix."""
    shared_notes: Mapping[str, Json]
    """Those of its resource."""


def identity(attributes: Mapping[str, Json], resource: Mapping[str, Json]) -> SpanIdentity:
    """Return session, user and notes of a span; its own attributes come before those of its resource."""
    return SpanIdentity(
        _first((attributes, resource), SESSION_KEYS),
        _first((attributes, resource), USER_KEYS),
        _notes(attributes),
        _notes(resource),
    )


def dialect_of(attributes: Mapping[str, Json]) -> Dialect:
    """Return the dialect of a span with these attributes.

    Some speak two: messages as single attributes hold more than the other spellings, and those as many
    attributes more than none.
    """
    template = attributes.get(logfire.TEMPLATE)
    if isinstance(template, str) and template in logfire.KINDS:
        return logfire.read_logfire
    operation = attributes.get("gen_ai.operation.name")
    known = isinstance(operation, str) and operation in KINDS
    if known and not _MESSAGES.isdisjoint(attributes):
        return read_genai
    if openinference.KIND in attributes:
        return openinference.read_openinference
    if langfuse.KIND in attributes and not known:
        return langfuse.read_langfuse_span
    said = indexed.KIND in attributes or indexed.REQUEST in attributes
    if indexed.has_messages(attributes) or (said and not known):
        return indexed.read_indexed
    return read_genai


def is_agent(attributes: Mapping[str, Json]) -> bool:
    """Return whether a span with these attributes is an agent's."""
    return any(attributes.get(key) == value for key, value in _AGENTS)


def read_span(span: TraceSpan) -> SpanReading:
    """Return what a span says in its dialect.

    Raises ValueError, TypeError, KeyError or AttributeError for content that the dialect does not have.
    """
    session, user, notes, shared = identity(span.attributes, span.resource)
    reading = dialect_of(span.attributes)(span)
    inputs, outputs = messages_of(span) if is_log(span) else ([], [])
    return replace(
        reading,
        outcomes=reading.outcomes or outcomes_of(span),
        session=session,
        user=user,
        notes=notes,
        shared_notes=shared,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def read_steps(span: TraceSpan) -> SpanReading:
    """Return what a span says in its dialect, without session, user and notes, for a reader who knows whose
    run it is; raises as `read_span` does."""
    reading = dialect_of(span.attributes)(span)
    if not is_log(span):
        return reading
    inputs, outputs = messages_of(span)
    return replace(reading, inputs=tuple(inputs), outputs=tuple(outputs))


def _first(tables: Iterable[Mapping[str, Json]], keys: Iterable[str]) -> str:
    """Return the first value that can be an id: a text, or a whole number as one."""
    for table in tables:
        for key in keys:
            found = table.get(key)
            if found.__class__ is int or (
                isinstance(found, str) and found.strip() and not is_scrubbed(found)
            ):
                return str(found).strip()
    return ""


def is_scrubbed(text: str) -> bool:
    """Return whether logfire took out what stood here: all sessions would be one."""
    return text.strip().startswith("[Scrubbed due to ")


def _notes(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    return {key.removeprefix(MARK): value for key, value in attributes.items() if key.startswith(MARK)}
