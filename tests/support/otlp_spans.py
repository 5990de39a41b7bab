"""Spans as OTLP JSON lines, as small as tests want them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

TRACE = "ab" * 16
BORN_NS = 1_800_000_000_000_000_000


def span(
    number: int,
    operation: str = "",
    *,
    parent: int | None = 1,
    trace: str = TRACE,
    events: tuple[dict[str, Any], ...] = (),
    attributes: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a span with an id of this number; it starts `number` seconds after the first."""
    given = {"gen_ai.operation.name": operation} if operation else {}
    if operation == "chat":
        given["gen_ai.request.model"] = "m"
    start = BORN_NS + number * 10**9
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": operation or "other",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 10**9),
        "attributes": attribute_list({**given, **(attributes or {})}),
        "events": list(events),
        **fields,
    }


def agent(number: int = 1, *, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    """Return the span of an agent, by default the outermost."""
    named = {"gen_ai.agent.name": "toy", **fields.pop("attributes", {})}
    return span(number, "invoke_agent", parent=parent, attributes=named, **fields)


def evaluation(value: Any, number: int = 9) -> dict[str, Any]:
    """Return the event of an evaluation; a value that is no number is as OTLP has it."""
    given = value if isinstance(value, dict) else {"doubleValue": value}
    return {
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": str(BORN_NS + number * 10**9),
        "attributes": [{"key": "gen_ai.evaluation.score.value", "value": given}],
    }


def attribute_list(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in values.items()]


def line(*spans: Any) -> str:
    """Return an export request with these spans."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]})


def write_lines(path: Path, *lines: str | dict[str, Any]) -> Path:
    """Write spans, each a line, and lines as they are."""
    path.write_text("".join(f"{one if isinstance(one, str) else line(one)}\n" for one in lines))
    return path


def exported(span: ReadableSpan) -> dict[str, Any]:
    """Return a span of the SDK as OTLP has it."""
    assert span.context is not None
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": "" if span.parent is None else f"{span.parent.span_id:016x}",
        "name": span.name,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": attribute_list(span.attributes or {}),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": attribute_list(event.attributes or {}),
            }
            for event in span.events
        ],
        "status": {"code": span.status.status_code.value},
    }
