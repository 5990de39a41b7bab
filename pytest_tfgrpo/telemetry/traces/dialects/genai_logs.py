"""Log records that are events of generative AI, as spans below the one that they belong to.

https://github.com/open-telemetry/semantic-conventions-genai: an evaluation often comes as a log record, later
than the span that it is about, and a model's input may, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan

PREFIX = "gen_ai."
"""Start of the names of the events that are read; other log records are none of ours."""
_CONVERSATION = "gen_ai.conversation.id"
NO_SPAN = "0" * 16
"""Parent of what belongs to a trace, and to no span of it in particular."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogEntry:
    """What a log record says."""

    trace: str
    span: str
    """Empty where the record names none."""
    at_ns: int
    attributes: Mapping[str, Json]
    body: Json
    resource: Mapping[str, Json]


def span_of_log(name: str, entry: LogEntry, place: str) -> TraceSpan:
    """Return a span without a step, below the span of a log record, that has the record as its event.

    Its id follows from what the record says, so that a repeated record is the same span. What the record says
    of session, user or application are attributes of the span, as they are of others.
    """
    said = entry.body if isinstance(entry.body, Mapping) else {}
    own_attributes = {key: entry.attributes[key] for key in entry.attributes if not _is_said(key)}
    attributes = {**said, **{key: entry.attributes[key] for key in entry.attributes if _is_said(key)}}
    content = json.dumps([name, entry.span, entry.at_ns, attributes, own_attributes], sort_keys=True)
    own = hashlib.sha256(content.encode()).hexdigest()[:16]
    return TraceSpan(
        key=(entry.trace, own),
        parent=entry.span or NO_SPAN,
        name=name,
        start_ns=entry.at_ns,
        end_ns=entry.at_ns,
        attributes=own_attributes,
        events=(SpanEvent(name, entry.at_ns, attributes),),
        place=place,
        resource=entry.resource,
    )


def is_log(span: TraceSpan) -> bool:
    """Return whether a span is made of a log record."""
    return bool(span.events) and span.name == span.events[0].name and span.name.startswith(PREFIX)


def _is_said(key: str) -> bool:
    return key.startswith(PREFIX) and key != _CONVERSATION
