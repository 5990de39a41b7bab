"""OpenTelemetry as the application uses it: its tracer provider, its current span, and processors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from pytest_tfgrpo.core.errors import SettingError

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_API = "opentelemetry.trace"


def open_idle_processor() -> SpanProcessor:
    """Return a span processor that does nothing; raises SettingError where the extra `otel` is missing."""
    return processor_type()()


@contextmanager
def within_trace(traceparent: str) -> Iterator[None]:
    """Make the span that a W3C trace context names the current one; without OpenTelemetry do nothing."""
    try:
        from opentelemetry import context, trace
    except ImportError:
        yield
        return
    _, trace_id, span_id, flags = traceparent.split("-")
    here = trace.SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=trace.TraceFlags(int(flags, 16))
    )
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(here)))
    try:
        yield
    finally:
        context.detach(token)


def processor_type() -> type[SpanProcessor]:
    """Return the class that span processors have; raises SettingError where the extra `otel` is missing."""
    try:
        from opentelemetry.sdk.trace import SpanProcessor
    except ImportError as error:
        raise SettingError(
            "a span processor needs OpenTelemetry; install it with: pip install 'pytest-tfgrpo[otel]'"
        ) from error
    return SpanProcessor


def recording_span() -> trace.Span | None:
    """Return the span that is open around the caller; None where there is none, or it is not kept.

    An application that has not loaded OpenTelemetry has none.
    """
    if _API not in sys.modules:
        return None
    from opentelemetry import trace

    span = trace.get_current_span()
    return span if span.is_recording() else None


def installed_provider() -> TracerProvider | None:
    """Return the tracer provider that the application installed, which takes processors; None without one.

    An application that has not loaded OpenTelemetry has none, and gets none.
    """
    if _API not in sys.modules:
        return None
    from opentelemetry import trace

    found = trace.get_tracer_provider()
    return cast("TracerProvider", found) if hasattr(found, "add_span_processor") else None
