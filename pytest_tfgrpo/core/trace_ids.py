"""Trace and span ids, from identity alone: a run's ids determine those of its spans.

So an agent in another process can know its parent, and a resumed run goes on with the same trace.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, TypeAlias

SpanKindOfRun: TypeAlias = Literal["run", "epoch", "group", "rollout", "attempt", "call"]
_STEP = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: its multiples lie far apart."""


def trace_id(run_id: str) -> bytes:
    """Return the 16 bytes that identify the trace of a run."""
    return sha256(f"trace {run_id}".encode()).digest()[:16]


def span_id(kind: SpanKindOfRun, name: str) -> bytes:
    """Return the 8 bytes that identify a span: `name` is its id in the run, unique among its kind."""
    return sha256(f"{kind} {name}".encode("utf-8", "surrogatepass")).digest()[:8]


def child_id(parent: bytes, place: int) -> bytes:
    """Return the 8 bytes that identify the child at a place, from 0, below a span."""
    return ((int.from_bytes(parent) + _STEP * (place + 1)) % 2**64).to_bytes(8)


def traceparent(trace: bytes, span: bytes, *, sampled: bool) -> str:
    """Return the W3C trace context of a span, as the variable ``TRACEPARENT`` has it."""
    return f"00-{trace.hex()}-{span.hex()}-{'01' if sampled else '00'}"
