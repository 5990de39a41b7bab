"""Requests of OTLP/HTTP as spans: traces, and the log records that are events of generative AI.

https://opentelemetry.io/docs/specs/otlp/#otlphttp; requests come from anywhere, and what is not as OTLP has
it is refused, span by span where the rest can be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Literal

from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.otlp.otlp_json import logs_of, spans_of
from pytest_tfgrpo.telemetry.traces.otlp.otlp_protobuf import logs_of_protobuf, spans_of_protobuf
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan

OtlpForm = Literal["json", "protobuf"]
"""``application/json`` or ``application/x-protobuf``."""
UNDECODABLE = frozenset({RefusedTrace.NOT_JSON, RefusedTrace.NOT_PROTOBUF})
"""Why a whole request is refused: it stands alone, without a key."""


def read_otlp(body: bytes, *, form: OtlpForm, place: str) -> list[TraceSpan | RefusedSpan]:
    """Return the spans of an ``ExportTraceServiceRequest``, and what is refused of them, in its order.

    A body that cannot be decoded is one refusal, of UNDECODABLE. Raises SettingError where protobuf is asked
    for and the extra ``serve`` is missing.
    """
    if form == "protobuf":
        return spans_of_protobuf(body, place)
    return _of_json(body, place, spans_of)


def read_otlp_logs(body: bytes, *, form: OtlpForm, place: str) -> list[TraceSpan | RefusedSpan]:
    """Return the events of generative AI of an ``ExportLogsServiceRequest``, and what is refused of them.

    Each is a span without a step, below the span that it belongs to; other log records are left out. Refuses
    and raises as `read_otlp` does.
    """
    return logs_of_protobuf(body, place) if form == "protobuf" else _of_json(body, place, logs_of)


def _of_json(
    body: bytes, place: str, read: Callable[[Json, str], Iterator[TraceSpan | RefusedSpan]]
) -> list[TraceSpan | RefusedSpan]:
    try:
        request = json.loads(body, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError):
        return [RefusedSpan(RefusedTrace.NOT_JSON, place)]
    return list(read(request, place))
