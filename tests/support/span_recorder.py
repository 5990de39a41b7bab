"""The toy agent whose spans the recording scripts take, and an exporter that writes OTLP JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

QUESTION = "What is the weather in Paris?"
ANSWER = "It is sunny in Paris."
CALLS = ("Atlantis", "Paris")
"""What the model looks up before it answers."""


def weather(city: str) -> str:
    """Return the weather of a city."""
    if city != "Paris":
        raise LookupError(f"no such city: {city}")
    return "sunny"


class Lines(SpanExporter):
    """Writes each span as a line, as soon as it ends: children before their parents."""

    def __init__(self, path: Path) -> None:
        path.write_text("")
        self.file = path.open("a", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            scope = {
                "scope": {"name": span.instrumentation_scope.name if span.instrumentation_scope else ""},
                "spans": [otlp(span)],
            }
            resource = {"attributes": attributes({"service.name": "toy"})}
            self.file.write(
                json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + "\n"
            )
        self.file.flush()
        return SpanExportResult.SUCCESS


class LogLines(LogRecordExporter):
    """Writes each log record as a line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        resource = {"attributes": attributes({"service.name": "toy"})}
        with self.path.open("a", encoding="utf-8") as file:
            for one in batch:
                logs = [{"scope": {"name": "toy"}, "logRecords": [otlp_log(one.log_record)]}]
                file.write(json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": logs}]}) + "\n")
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def otlp_log(record: Any) -> dict[str, Any]:
    """Return a log record as OTLP's JSON encoding has it."""
    return {
        "traceId": f"{record.trace_id:032x}",
        "spanId": f"{record.span_id:016x}",
        "timeUnixNano": str(record.timestamp or 0),
        "observedTimeUnixNano": str(record.observed_timestamp),
        "eventName": record.event_name or "",
        "body": value(record.body),
        "attributes": attributes(record.attributes or {}),
    }


def otlp(span: ReadableSpan) -> dict[str, Any]:
    """Return a span as OTLP's JSON encoding has it."""
    status = {"code": span.status.status_code.value, "message": span.status.description}
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": "" if span.parent is None else f"{span.parent.span_id:016x}",
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": attributes(span.attributes),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": attributes(event.attributes),
            }
            for event in span.events
        ],
        "status": {key: item for key, item in status.items() if item},
    }


def attributes(found: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(item)} for key, item in found.items() if "stacktrace" not in key]


def value(item: Any) -> dict[str, Any]:
    match item:
        case bool():
            return {"boolValue": item}
        case int():
            return {"intValue": str(item)}
        case float():
            return {"doubleValue": item}
        case str():
            return {"stringValue": item}
        case None:
            return {}
        case dict():
            return {"kvlistValue": {"values": attributes(item)}}
    return {"arrayValue": {"values": [value(one) for one in item]}}
