"""Spans from files of OTLP JSON lines, as the file exporter of an OpenTelemetry Collector writes them.

https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/; every line is one export request. Files come
from anywhere: each line and text has a limit, and what is not as OTLP has it is refused with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from pytest_tfgrpo.core.strict import finite
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.traces.turns import RefusedSpan, RefusedTrace, SpanEvent, SpanKey, TraceSpan

LINE_BYTES = 64 * 2**20
TEXT_CHARS = 4 * 2**20
"""Longest text of a span."""
_TRACE, _SPAN = re.compile(r"[0-9a-fA-F]{32}"), re.compile(r"[0-9a-fA-F]{16}")
_ERROR = (2, "STATUS_CODE_ERROR")
_LARGEST = 2**63
_DEEPEST = 20
"""Lists and maps within one another in an attribute."""


class _NotUsed(Exception):
    """A span is not used."""

    def __init__(self, reason: RefusedTrace) -> None:
        self.reason = reason


def read_otlp_lines(file: BinaryIO, name: str) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans of a file called `name` in its order, or why there is none; raises OSError."""
    number = 0
    while text := file.readline(LINE_BYTES):
        number += 1
        if len(text) == LINE_BYTES and not text.endswith(b"\n"):
            while (rest := file.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield RefusedSpan(RefusedTrace.TOO_LARGE, f"{name}:{number}")
        elif text.strip():
            yield from _spans(text, f"{name}:{number}")


def _spans(text: bytes, place: str) -> Iterator[TraceSpan | RefusedSpan]:
    try:
        request = json.loads(text, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError):
        yield RefusedSpan(RefusedTrace.NOT_JSON, place)
        return
    try:
        found = [
            span
            for resource in _list(_table(request).get("resourceSpans"))
            for scope in _list(_table(resource).get("scopeSpans"))
            for span in _list(_table(scope).get("spans"))
        ]
    except _NotUsed as error:
        yield RefusedSpan(error.reason, place)
        return
    for span in found:
        yield _span(span, place)


def _span(found: Json, place: str) -> TraceSpan | RefusedSpan:
    key: SpanKey | None = None
    parent = ""
    try:
        table = _table(found)
        key = (_id(table.get("traceId"), _TRACE), "")
        key = (key[0], _id(table.get("spanId"), _SPAN))
        if table.get("parentSpanId") not in (None, "", "0" * 16):
            parent = _id(table["parentSpanId"], _SPAN)
        status = _table(table.get("status") or {})
        return TraceSpan(
            key=key,
            parent=parent,
            name=_text(table.get("name", "")),
            start_ns=_time(table.get("startTimeUnixNano")),
            end_ns=_time(table.get("endTimeUnixNano")),
            attributes=_attributes(table.get("attributes")),
            events=tuple(map(_event, _list(table.get("events")))),
            failed=status.get("code") in _ERROR,
            message=_text(status.get("message", "")),
            place=place,
        )
    except _NotUsed as error:
        return RefusedSpan(error.reason, place, key, parent)


def _event(found: Json) -> SpanEvent:
    table = _table(found)
    return SpanEvent(
        _text(table.get("name", "")), _time(table.get("timeUnixNano")), _attributes(table.get("attributes"))
    )


def _attributes(found: Json, depth: int = 0) -> dict[str, Json]:
    attributes = {}
    for one in _list(found):
        table = _table(one)
        attributes[_text(table.get("key"))] = _value(table.get("value"), depth)
    return attributes


def _value(found: Json, depth: int) -> Json:
    """Return what an ``AnyValue`` holds; None where it holds nothing."""
    table = _table(found or {})
    if depth > _DEEPEST or len(table) > 1:
        raise _NotUsed(RefusedTrace.MALFORMED)
    match next(iter(table.items()), None):
        case ("stringValue" | "bytesValue", value):
            return _text(value)
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
    raise _NotUsed(RefusedTrace.MALFORMED)


def _double(value: float | str) -> float:
    """Return a number; as a text it may be NaN or infinite."""
    try:
        return float(value[:40] if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        raise _NotUsed(RefusedTrace.MALFORMED) from None


def _integer(value: Json) -> int:
    """Return a whole number, which OTLP writes as a text."""
    try:
        number = int(value[:40]) if isinstance(value, str) else value
    except ValueError:
        number = None
    if number.__class__ is not int or not -_LARGEST <= number < _LARGEST:
        raise _NotUsed(RefusedTrace.MALFORMED)
    return int(number)


def _time(value: Json) -> int:
    number = _integer(value)
    if number <= 0:
        raise _NotUsed(RefusedTrace.MALFORMED)
    return number


def _id(value: Json, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value) or not value.strip("0"):
        raise _NotUsed(RefusedTrace.BAD_ID)
    return value.lower()


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _NotUsed(RefusedTrace.MALFORMED)
    if len(value) > TEXT_CHARS:
        raise _NotUsed(RefusedTrace.TOO_LARGE)
    if "\0" in value or (not value.isascii() and _is_torn(value)):
        raise _NotUsed(RefusedTrace.BAD_TEXT)
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
        raise _NotUsed(RefusedTrace.MALFORMED)
    return value


def _table(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _NotUsed(RefusedTrace.MALFORMED)
    return value
