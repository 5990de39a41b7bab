"""Trace and span ids, from identity alone: whoever knows a run's ids knows those of its spans.

So an agent in another process can be told its parent, and a resumed run goes on with the same trace.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, TypeAlias

SpanKindOfRun: TypeAlias = Literal["run", "epoch", "group", "rollout", "attempt", "frame", "call"]


def trace_id(run_id: str) -> bytes:
    """Return the 16 bytes that identify the trace of a run."""
    return sha256(f"trace {run_id}".encode()).digest()[:16]


def span_id(kind: SpanKindOfRun, name: str) -> bytes:
    """Return the 8 bytes that identify a span: `name` is its id in the run, unique among its kind."""
    return sha256(f"{kind} {name}".encode("utf-8", "surrogatepass")).digest()[:8]


def traceparent(run_id: str, rollout_id: str, *, sampled: bool) -> str:
    """Return the W3C trace context of a rollout's span, as the variable ``TRACEPARENT`` has it."""
    return f"00-{trace_id(run_id).hex()}-{span_id('rollout', rollout_id).hex()}-{int(sampled):02x}"
