"""Spans as events of RL_SPANS: those of one trace and one resource that came together, redacted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan

SPANS = "RL_SPANS"
_TRACE = re.compile(r"[0-9A-Za-z_-]{1,128}")
"""What a trace is called, also as a part of a key in a table."""


def encode_spans(trace: str, spans: Sequence[TraceSpan]) -> bytes:
    """Return the data of an event: spans of one trace with one resource, whose texts are redacted."""
    rows = [
        {
            "id": span.key[1],
            "parent": span.parent,
            "name": span.name,
            "start_ns": span.start_ns,
            "end_ns": span.end_ns,
            "attributes": span.attributes,
            "events": [
                {"name": event.name, "at_ns": event.at_ns, "attributes": event.attributes}
                for event in span.events
            ],
            "failed": span.failed,
            "message": span.message,
        }
        for span in spans
    ]
    resource = spans[0].resource if spans else {}
    return _encoded({"trace": trace, "resource": resource, "spans": rows})


def encode_opt_out(trace: str) -> bytes:
    """Return the data of an event: nothing of a trace is to be kept."""
    return _encoded({"trace": trace, "opt_out": True})


def event_id(data: bytes) -> str:
    """Return an id that depends on the data alone, so that a repeated request is stored once."""
    return derived_id("spans", data.decode("ascii"))


def decode_spans(data: bytes) -> tuple[str, list[TraceSpan] | None]:
    """Return trace id and spans; None for spans: nothing of the trace is to be kept.

    Raises ValueError, KeyError or TypeError for data that is no event of RL_SPANS.
    """
    found = json.loads(data)
    trace = found["trace"]
    if not isinstance(trace, str):
        raise TypeError(f"the trace id {trace!r:.100} is no text")
    if _TRACE.fullmatch(trace) is None:
        raise ValueError(f"the trace id {trace!a:.100} is not letters, digits, _ and -")
    if found.get("opt_out"):
        return trace, None
    return trace, [_span(trace, found["resource"], row) for row in found["spans"]]


def trace_in(data: bytes) -> str:
    """Return the trace id of an event that `encode_spans` made, without reading the rest of it."""
    return data[data.rfind(b'"', 0, -2) + 1 : -2].decode("ascii", "replace")


def _span(trace: str, resource: dict[str, Json], row: dict[str, Json]) -> TraceSpan:
    return TraceSpan(
        key=(trace, row["id"]),
        parent=row["parent"],
        name=row["name"],
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        attributes=row["attributes"],
        events=tuple(SpanEvent(one["name"], one["at_ns"], one["attributes"]) for one in row["events"]),
        failed=row["failed"],
        message=row["message"],
        place=row["id"],
        resource=resource,
    )


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode("ascii")
