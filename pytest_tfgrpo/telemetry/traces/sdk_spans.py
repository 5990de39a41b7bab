"""Spans of OpenTelemetry's SDK as those that dialects read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import MARK, SpanEvent, SpanKey, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

MOST_OPEN = 10_000
"""Spans that are remembered until they end; beyond that the oldest is forgotten."""
MOST_SPANS = 10_000
"""Spans of one run that are kept; a longer run is no run."""


def keys_of(span: ReadableSpan) -> tuple[SpanKey, SpanKey | None]:
    """Return the keys of a span and of its parent."""
    context, parent = span.context, span.parent
    assert context is not None
    own = (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    return own, None if parent is None else (own[0], f"{parent.span_id:016x}")


def converted(span: ReadableSpan) -> TraceSpan:
    """Return a span of the SDK as one that dialects read."""
    key, parent = keys_of(span)
    start_ns = span.start_time or 0
    return TraceSpan(
        key=key,
        parent="" if parent is None else parent[1],
        name=span.name,
        start_ns=start_ns,
        end_ns=span.end_time or start_ns,
        attributes=_plain(span.attributes),
        events=_events(span),
        failed=span.status.status_code.name == "ERROR",
        message=span.status.description or "",
    )


def marks_of(span: ReadableSpan) -> TraceSpan:
    """Return a span around an agent's, which has only its place and its marks."""
    key, parent = keys_of(span)
    return TraceSpan(
        key=key,
        parent="" if parent is None else parent[1],
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.start_time or 0,
        attributes={},
        events=tuple(event for event in _events(span) if event.name.startswith(MARK)),
    )


def _events(span: ReadableSpan) -> tuple[SpanEvent, ...]:
    return (
        ()
        if not span.events
        else tuple(
            SpanEvent(event.name, event.timestamp, _plain(event.attributes)) for event in tuple(span.events)
        )
    )


def _plain(attributes: Mapping[str, object] | None) -> dict[str, Json]:
    if not attributes:
        return {}
    copy = getattr(attributes, "copy", None)  # the SDK's mapping takes a lock for each of its items
    found: dict[str, Json] = dict(attributes) if copy is None else copy()
    if tuple in map(type, found.values()):
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    return found
