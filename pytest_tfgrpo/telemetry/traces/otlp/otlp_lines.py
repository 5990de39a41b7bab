"""Spans from files of OTLP JSON lines, as the file exporter of an OpenTelemetry Collector writes them.

https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/; every line is one export request. Files come
from anywhere: each line and text has a limit, and what is not as OTLP has it is refused with its line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.telemetry.traces.otlp.otlp_json import logs_of, spans_of
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan

LINE_BYTES = 64 * 2**20


def read_otlp_lines(file: BinaryIO, name: str) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans of a file called `name` in its order, or why there is none; raises OSError.

    A line may hold log records, too, of which the events of generative AI are spans as `read_otlp_logs` has
    them.
    """
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
    yield from spans_of(request, place)
    if isinstance(request, dict):
        yield from logs_of(request, place)
