"""Spans from the JSON encoding of OTLP.

What is not as OTLP has it is refused: the whole request, or one span of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import PREFIX, LogEntry, span_of_log
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, SpanEvent, SpanKey, TraceSpan

TEXT_CHARS = 4 * 2**20
"""Longest text of a span."""
_TRACE, _SPAN = re.compile(r"[0-9a-fA-F]{32}"), re.compile(r"[0-9a-fA-F]{16}")
_NO_PARENT = (None, "", "0" * 16)
_ERROR = (2, "STATUS_CODE_ERROR")
_LARGEST = 2**63
DEEPEST = 20
"""Lists and maps within one another in an attribute."""


class NotUsed(Exception):
    """A span is not used."""

    def __init__(self, reason: RefusedTrace) -> None:
        self.reason = reason


def spans_of(request: Json, place: str) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans of an export request in its order, or why there is none."""
    try:
        found = [
            (shared, span)
            for resource in _list(_table(request).get("resourceSpans"))
            for shared in (_resource(_table(resource).get("resource")),)
            for scope in _list(_table(resource).get("scopeSpans"))
            for span in _list(_table(scope).get("spans"))
        ]
    except NotUsed as error:
        yield RefusedSpan(error.reason, place)
        return
    for resource, span in found:
        yield _span(span, resource, place)


def logs_of(request: Json, place: str) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the events of generative AI of a request of logs as spans, or why there is none."""
    try:
        found = [
            (shared, _table(record))
            for resource in _list(_table(request).get("resourceLogs"))
            for shared in (_resource(_table(resource).get("resource")),)
            for scope in _list(_table(resource).get("scopeLogs"))
            for record in _list(_table(scope).get("logRecords"))
        ]
    except NotUsed as error:
        yield RefusedSpan(error.reason, place)
        return
    for resource, record in found:
        name = _event_name(record)
        if name.startswith(PREFIX):
            yield _log(name, record, resource, place)


def _event_name(record: dict[str, Json]) -> str:
    """Return the name of a record's event, wherever it stands; empty for a record that is no event."""
    name = record.get("eventName")
    attributes = record.get("attributes")
    for one in attributes if not name and isinstance(attributes, list) else ():
        if isinstance(one, dict) and one.get("key") == "event.name" and isinstance(one.get("value"), dict):
            name = one["value"].get("stringValue")
    return name if isinstance(name, str) else ""


def _log(
    name: str, record: dict[str, Json], resource: dict[str, Json] | NotUsed, place: str
) -> TraceSpan | RefusedSpan:
    try:
        if isinstance(resource, NotUsed):
            raise resource
        span, at = record.get("spanId"), record.get("timeUnixNano")
        entry = LogEntry(
            trace=_id(record.get("traceId"), _TRACE),
            span="" if span in _NO_PARENT else _id(span, _SPAN),
            at_ns=checked_time(record.get("observedTimeUnixNano") if at in (None, 0, "0") else at),
            attributes=_attributes(record.get("attributes")),
            body=_value(record.get("body"), 0),
            resource=resource,
        )
        return span_of_log(checked_text(name), entry, place)
    except NotUsed as error:
        return RefusedSpan(error.reason, place)


def _resource(found: Json) -> dict[str, Json] | NotUsed:
    """Return the attributes of a resource, or why its spans are not used."""
    try:
        return {} if found is None else _attributes(_table(found).get("attributes"))
    except NotUsed as error:
        return error


def _span(found: Json, resource: dict[str, Json] | NotUsed, place: str) -> TraceSpan | RefusedSpan:
    key: SpanKey | None = None
    parent = ""
    try:
        table = _table(found)
        key = (_id(table.get("traceId"), _TRACE), "")
        key = (key[0], _id(table.get("spanId"), _SPAN))
        if table.get("parentSpanId") not in _NO_PARENT:
            parent = _id(table["parentSpanId"], _SPAN)
        status = _table(table.get("status") or {})
        if isinstance(resource, NotUsed):
            raise resource
        return TraceSpan(
            key=key,
            parent=parent,
            name=checked_text(table.get("name", "")),
            start_ns=checked_time(table.get("startTimeUnixNano")),
            end_ns=checked_time(table.get("endTimeUnixNano")),
            attributes=_attributes(table.get("attributes")),
            events=tuple(map(_event, _list(table.get("events")))),
            failed=status.get("code") in _ERROR,
            message=checked_text(status.get("message", "")),
            place=place,
            resource=resource,
        )
    except NotUsed as error:
        return RefusedSpan(error.reason, place, key, parent)


def _event(found: Json) -> SpanEvent:
    table = _table(found)
    return SpanEvent(
        checked_text(table.get("name", "")),
        checked_time(table.get("timeUnixNano")),
        _attributes(table.get("attributes")),
    )


def _attributes(found: Json, depth: int = 0) -> dict[str, Json]:
    attributes = {}
    for one in _list(found):
        table = _table(one)
        attributes[checked_text(table.get("key"))] = _value(table.get("value"), depth)
    return attributes


def _value(found: Json, depth: int) -> Json:
    """Return what an ``AnyValue`` holds; None where it holds nothing."""
    table = _table(found or {})
    if depth > DEEPEST or len(table) > 1:
        raise NotUsed(RefusedTrace.MALFORMED)
    match next(iter(table.items()), None):
        case ("stringValue" | "bytesValue", value):
            return checked_text(value)
        case ("boolValue", bool(value)):
            return value
        case ("intValue", value):
            return _integer(value)
        case ("doubleValue", value) if isinstance(value, int | float | str) and not isinstance(value, bool):
            return _double(value)
        case ("arrayValue", value):
            return [_value(one, depth + 1) for one in _list(_table(value).get("values"))]
        case ("kvlistValue", value):
            return _attributes(_table(value).get("values"), depth + 1)
        case None:
            return None
    raise NotUsed(RefusedTrace.MALFORMED)


def _double(value: float | str) -> float | str:
    try:
        return finite_or_text(float(value[:40] if isinstance(value, str) else value))
    except (ValueError, OverflowError):
        raise NotUsed(RefusedTrace.MALFORMED) from None


def finite_or_text(number: float) -> float | str:
    """Return a number; NaN and infinities as the texts that OTLP has for them: JSON has no such numbers."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _integer(value: Json) -> int:
    """Return a whole number, which OTLP writes as a text."""
    try:
        number = int(value[:40]) if isinstance(value, str) else value
    except ValueError:
        number = None
    if number.__class__ is not int or not -_LARGEST <= number < _LARGEST:
        raise NotUsed(RefusedTrace.MALFORMED)
    return int(number)


def checked_time(value: Json) -> int:
    """Return nanoseconds since 1970; raises NotUsed."""
    number = _integer(value)
    if number <= 0:
        raise NotUsed(RefusedTrace.MALFORMED)
    return number


def _id(value: Json, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value) or not value.strip("0"):
        raise NotUsed(RefusedTrace.BAD_ID)
    return value.lower()


def checked_text(value: Json) -> str:
    """Return a text that can be kept; raises NotUsed."""
    if not isinstance(value, str):
        raise NotUsed(RefusedTrace.MALFORMED)
    if len(value) > TEXT_CHARS:
        raise NotUsed(RefusedTrace.TOO_LARGE)
    if "\0" in value or (not value.isascii() and _is_torn(value)):
        raise NotUsed(RefusedTrace.BAD_TEXT)
    return value


def _is_torn(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _list(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotUsed(RefusedTrace.MALFORMED)
    return value


def _table(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise NotUsed(RefusedTrace.MALFORMED)
    return value
