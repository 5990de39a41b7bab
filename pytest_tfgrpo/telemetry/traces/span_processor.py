"""Runs of agents as they happen: a span processor of OpenTelemetry's SDK, and marks in its current span.

Spans end children first, and frameworks set attributes late: which agent is the outermost shows when a span
ends, from those around it that are still open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.dialects import is_agent, read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.turns import MARK, AgentRun, SpanEvent, SpanKey, TraceSpan

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

MOST_OPEN = 10_000
"""Spans that are remembered until they end; beyond that the oldest is forgotten."""
MOST_SPANS = 10_000
"""Spans of one run that are kept; a longer run is no run."""
_DEEPEST = 1000
"""Spans around a span that are looked at."""
_API = "opentelemetry.trace"


_Around = TypeVar("_Around")


class _OpenSpan(NamedTuple, Generic[_Around]):
    span: ReadableSpan
    parent: SpanKey | None
    around: _Around | None
    ended: list[TraceSpan]
    """Spans within it that have ended, where it is an outermost agent."""


def open_span_processor(
    *,
    take: Callable[[AgentRun, _Around | None], None],
    around: Callable[[], _Around | None],
    failed: Callable[[str, Exception], None],
) -> SpanProcessor:
    """Return a span processor that hands on each run of an agent once its span has ended.

    `around` is called at each start of a span, on its thread; `take` gets what it said, not None, for the
    nearest span at or around the agent's. `failed` gets what would else reach the agent. Raises SettingError
    where the extra `otel` is missing.
    """
    base = processor_type()
    runs = _RunsInProgress(take, around)

    class AgentRunProcessor(base):  # type: ignore[valid-type, misc]
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
            try:
                runs.started(span)
            except Exception as error:  # noqa: BLE001 - nothing reaches the agent
                failed("span", error)

        def on_end(self, span: ReadableSpan) -> None:
            try:
                runs.ended(span)
            except Exception as error:  # noqa: BLE001 - nothing reaches the agent
                failed("span", error)

    return AgentRunProcessor()


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


class _RunsInProgress(Generic[_Around]):
    """Spans that are open, and those that ended within an agent that is.

    Garbage collection may end a span in the middle of anything here, on the same thread. So there is no lock,
    and each change is one operation of a dict or list, which a further start or end may come before or after.
    """

    def __init__(
        self, take: Callable[[AgentRun, _Around | None], None], around: Callable[[], _Around | None]
    ) -> None:
        self._take, self._around = take, around
        self._open: dict[SpanKey, _OpenSpan[_Around]] = {}

    def started(self, span: ReadableSpan) -> None:
        key, parent = _keys(span)
        around = self._around()
        outer = None if parent is None else self._open.get(parent)
        if around is None and outer is not None:
            around = outer.around
        while len(self._open) >= MOST_OPEN:
            with suppress(RuntimeError, StopIteration):  # others changed it between the two calls
                self._open.pop(next(iter(self._open)), None)
        self._open[key] = _OpenSpan(span, parent, around, [])

    def ended(self, span: ReadableSpan) -> None:
        key, _ = _keys(span)
        path = self._path(key)
        self._open.pop(key, None)
        agents = [at for at, one in enumerate(path) if is_agent(one.span.attributes or {})]
        if not agents:
            return
        top = path[agents[-1]]
        if len(top.ended) <= MOST_SPANS:
            top.ended.append(converted(span))
        if top is not path[0]:
            return
        spans = top.ended.copy()
        if len(spans) > MOST_SPANS:
            raise ValueError(f"a run of an agent has more than {MOST_SPANS} spans")
        forest = SpanForest(read_span)
        forest.take([*spans, *(_marks_of(one.span) for one in path[1:])])
        runs = [run for run in forest.runs() if run.parent is None]
        for run in runs:
            self._take(run, top.around)
        if not runs:
            raise ValueError(
                f"the spans of an agent's run are {', '.join(one.reason for one in forest.refused)}"
            )

    def _path(self, key: SpanKey) -> list[_OpenSpan[_Around]]:
        """Return the open spans from this one outwards."""
        path: list[_OpenSpan[_Around]] = []
        at: SpanKey | None = key
        while at is not None and len(path) < _DEEPEST and (one := self._open.get(at)) is not None:
            path.append(one)
            at = one.parent
        return path


def _keys(span: ReadableSpan) -> tuple[SpanKey, SpanKey | None]:
    context, parent = span.context, span.parent
    assert context is not None
    own = (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    return own, None if parent is None else (own[0], f"{parent.span_id:016x}")


def converted(span: ReadableSpan) -> TraceSpan:
    """Return a span of the SDK as one that dialects read."""
    key, parent = _keys(span)
    start_ns = span.start_time or 0
    return TraceSpan(
        key=key,
        parent="" if parent is None else parent[1],
        name=span.name,
        start_ns=start_ns,
        end_ns=span.end_time or start_ns,
        attributes=_plain(span.attributes),
        events=_events(span),
        failed=span.status.status_code.name == "ERROR",
        message=span.status.description or "",
    )


def _marks_of(span: ReadableSpan) -> TraceSpan:
    """Return a span around an agent's, which has only its place and its marks."""
    key, parent = _keys(span)
    return TraceSpan(
        key=key,
        parent="" if parent is None else parent[1],
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.start_time or 0,
        attributes={},
        events=tuple(event for event in _events(span) if event.name.startswith(MARK)),
    )


def _events(span: ReadableSpan) -> tuple[SpanEvent, ...]:
    return (
        ()
        if not span.events
        else tuple(
            SpanEvent(event.name, event.timestamp, _plain(event.attributes)) for event in tuple(span.events)
        )
    )


def _plain(attributes: Mapping[str, object] | None) -> dict[str, Json]:
    if not attributes:
        return {}
    copy = getattr(attributes, "copy", None)  # the SDK's mapping takes a lock for each of its items
    found: dict[str, Json] = dict(attributes) if copy is None else copy()
    if tuple in map(type, found.values()):
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    return found
