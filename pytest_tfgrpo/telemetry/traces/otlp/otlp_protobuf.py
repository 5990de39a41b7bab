"""Spans and log records from the binary encoding of OTLP: the one file that imports opentelemetry-proto."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import PREFIX, LogEntry, span_of_log
from pytest_tfgrpo.telemetry.traces.otlp.otlp_json import (
    DEEPEST,
    NotUsed,
    checked_text,
    checked_time,
    finite_or_text,
)
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, SpanEvent, SpanKey, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_FAILED = 2
"""Status code of an error."""


@cache
def _requests() -> tuple[type[Any], type[Any]]:
    try:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise SettingError(
            "OTLP as protobuf needs opentelemetry-proto; install it with: pip install 'pytest-tfgrpo[serve]'"
        ) from error
    return ExportTraceServiceRequest, ExportLogsServiceRequest


def spans_of_protobuf(body: bytes, place: str) -> list[TraceSpan | RefusedSpan]:
    """Return the spans of a trace request in its order, and what is refused of them; raises SettingError."""
    request = _decoded(_requests()[0], body)
    if request is None:
        return [RefusedSpan(RefusedTrace.NOT_PROTOBUF, place)]
    return [
        _span(span, shared, place)
        for resource in request.resource_spans
        for shared in (_resource(resource.resource),)
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def logs_of_protobuf(body: bytes, place: str) -> list[TraceSpan | RefusedSpan]:
    """Return the events of generative AI of a request of logs as spans; raises SettingError."""
    request = _decoded(_requests()[1], body)
    if request is None:
        return [RefusedSpan(RefusedTrace.NOT_PROTOBUF, place)]
    records = (
        _log(record, shared, place)
        for resource in request.resource_logs
        for shared in (_resource(resource.resource),)
        for scope in resource.scope_logs
        for record in scope.log_records
    )
    return [record for record in records if record is not None]


def _decoded(request: type[Any], body: bytes) -> Any:
    try:
        return request.FromString(body)
    except Exception:  # noqa: BLE001 - protobuf's own error has no base but this
        return None


def _resource(resource: Resource) -> dict[str, Json] | NotUsed:
    try:
        return _attributes(resource.attributes)
    except NotUsed as error:
        return error


def _span(span: Span, resource: dict[str, Json] | NotUsed, place: str) -> TraceSpan | RefusedSpan:
    key: SpanKey | None = None
    parent = ""
    try:
        key = (_id(span.trace_id, 16), "")
        key = (key[0], _id(span.span_id, 8))
        parent = _id(span.parent_span_id, 8) if any(span.parent_span_id) else ""
        if isinstance(resource, NotUsed):
            raise resource
        return TraceSpan(
            key=key,
            parent=parent,
            name=checked_text(span.name),
            start_ns=checked_time(span.start_time_unix_nano),
            end_ns=checked_time(span.end_time_unix_nano),
            attributes=_attributes(span.attributes),
            events=tuple(
                SpanEvent(
                    checked_text(event.name),
                    checked_time(event.time_unix_nano),
                    _attributes(event.attributes),
                )
                for event in span.events
            ),
            failed=span.status.code == _FAILED,
            message=checked_text(span.status.message),
            place=place,
            resource=resource,
        )
    except NotUsed as error:
        return RefusedSpan(error.reason, place, key, parent)


def _log(
    record: LogRecord, resource: dict[str, Json] | NotUsed, place: str
) -> TraceSpan | RefusedSpan | None:
    name = record.event_name or next(
        (one.value.string_value for one in record.attributes if one.key == "event.name"), ""
    )
    if not name.startswith(PREFIX):
        return None
    try:
        if isinstance(resource, NotUsed):
            raise resource
        entry = LogEntry(
            trace=_id(record.trace_id, 16),
            span=_id(record.span_id, 8) if any(record.span_id) else "",
            at_ns=checked_time(record.time_unix_nano or record.observed_time_unix_nano),
            attributes=_attributes(record.attributes),
            body=_value(record.body, 0),
            resource=resource,
        )
        return span_of_log(checked_text(name), entry, place)
    except NotUsed as error:
        return RefusedSpan(error.reason, place)


def _attributes(found: Sequence[KeyValue], depth: int = 0) -> dict[str, Json]:
    return {checked_text(one.key): _value(one.value, depth) for one in found}


def _value(found: AnyValue, depth: int) -> Json:
    """Return what an ``AnyValue`` holds; None where it holds nothing."""
    if depth > DEEPEST:
        raise NotUsed(RefusedTrace.MALFORMED)
    match found.WhichOneof("value"):
        case "string_value":
            return checked_text(found.string_value)
        case "bool_value":
            return found.bool_value
        case "int_value":
            return found.int_value
        case "double_value":
            return finite_or_text(found.double_value)
        case "array_value":
            return [_value(one, depth + 1) for one in found.array_value.values]
        case "kvlist_value":
            return _attributes(found.kvlist_value.values, depth + 1)
        case "bytes_value":
            return checked_text(b64encode(found.bytes_value).decode("ascii"))
    return None


def _id(value: bytes, length: int) -> str:
    if len(value) != length or not any(value):
        raise NotUsed(RefusedTrace.BAD_ID)
    return value.hex()
