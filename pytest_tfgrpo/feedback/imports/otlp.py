"""Files of OTLP JSON lines, as the file exporter of an OpenTelemetry Collector writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from pytest_tfgrpo.traces.otlp_lines import read_otlp_lines
from pytest_tfgrpo.traces.turns import RefusedSpan, TraceSpan

_REQUEST = re.compile(rb'"resource(?:Spans|Logs|Metrics)"\s*:')


def is_otlp(start: bytes) -> bool:
    """Return whether a file that begins with `start` has export requests."""
    return _REQUEST.search(start) is not None


def read_otlp_file(file: BinaryIO, name: str) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans of a file called `name`, or why there is none; raises OSError."""
    yield from read_otlp_lines(file, name)
