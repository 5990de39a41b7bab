"""The spans of one rollout, taken from the tracer provider of the application as they end.

A span belongs to the rollout that its parent belongs to, or else to that of the context it starts in. One of
neither, as in a thread that has lost its context, belongs to nobody: it is counted, not guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_steps
from pytest_tfgrpo.telemetry.traces.provider import installed_provider, processor_type
from pytest_tfgrpo.telemetry.traces.sdk_spans import MOST_OPEN, MOST_SPANS, converted
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

LATE, LOST, TOO_MANY = "late", "lost", "too_many"
"""Why a turn or tool call is not used: it had not ended when the agent had answered, it belongs to no
rollout, or its rollout has more spans than can be kept."""
_Key: TypeAlias = tuple[int, int]
"""Trace and span id."""


class RolloutSpans:
    """Takes the spans of one rollout until its agent has answered."""

    def __init__(self, run: SpanCounts) -> None:
        self.run = run
        self.unused: Counter[str] = Counter()
        """What was not used of this rollout, by reason, once its spans were taken."""
        self.keys: set[_Key] = set()
        """Of all that have started."""
        self.open: dict[_Key, ReadableSpan] = {}
        self.ended: list[ReadableSpan] = []
        self.closed = False

    @contextmanager
    def around(self) -> Iterator[None]:
        """Make the spans that start in this context, and those copied from it, belong to the rollout."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def take(self) -> list[TraceSpan]:
        """Return the spans that have ended, and count turns and tool calls that have not; end with that."""
        with _LOCK:
            late = [*self.open.values()]
            self.closed = True
        self.drop()
        for span in late:
            self.refuse(span, LATE)
        return [converted(span) for span in self.ended]

    def drop(self) -> None:
        """Take no more."""
        with _LOCK:
            self.closed = True
            _ACTIVE.discard(self)

    def refuse(self, span: ReadableSpan, reason: str) -> None:
        """Count a span if it is a turn or a tool call."""
        if _is_step(span):
            self.count(reason)

    def count(self, reason: str) -> None:
        """Count a span that is no frame."""
        with _LOCK:
            self.unused.setdefault(reason, 0)  # nothing can come between the parts of the next line
            self.unused[reason] += 1
        self.run.count(reason)


_CURRENT: ContextVar[RolloutSpans | None] = ContextVar("tfgrpo_rollout_spans", default=None)
_ACTIVE: set[RolloutSpans] = set()
_PROVIDERS: dict[int, TracerProvider] = {}
"""Those that have a processor of ours, by their ids: a processor cannot be removed, so they have one for all
runs of the process."""
_LOCK = RLock()
"""Garbage collection may end a span, or a rollout, in the middle of anything, on the thread that holds it."""


def open_rollout_spans(run: SpanCounts) -> RolloutSpans | None:
    """Return what takes the spans of a rollout; None where the application has no tracer provider."""
    provider = installed_provider()
    if provider is None:
        return None
    spans = RolloutSpans(run)
    with _LOCK:
        if id(provider) not in _PROVIDERS:
            _PROVIDERS[id(provider)] = provider
            provider.add_span_processor(_open_processor())
        _ACTIVE.add(spans)
    return spans


def _open_processor() -> SpanProcessor:
    rollouts = _OpenSpans()

    class RolloutSpanProcessor(processor_type()):  # type: ignore[misc]
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
            rollouts.started(span)

        def on_end(self, span: ReadableSpan) -> None:
            rollouts.ended(span)

    return RolloutSpanProcessor()


class _OpenSpans:
    """To which rollout each open span belongs."""

    def __init__(self) -> None:
        self._owners: dict[_Key, RolloutSpans] = {}

    def started(self, span: ReadableSpan) -> None:
        assert span.context is not None
        key, parent = (span.context.trace_id, span.context.span_id), span.parent
        owner = _CURRENT.get()
        with _LOCK:
            if parent is not None:
                around = (parent.trace_id, parent.span_id)
                if owner is None or around not in owner.keys:
                    owner = self._owner(around) or owner
            if owner is None:
                return
            while len(self._owners) >= MOST_OPEN:
                with suppress(RuntimeError, StopIteration):  # changed between the two calls
                    self._owners.pop(next(iter(self._owners)), None)
            self._owners[key] = owner
            if not owner.closed and len(owner.keys) < MOST_SPANS:
                owner.keys.add(key)
                owner.open[key] = span

    def ended(self, span: ReadableSpan) -> None:
        assert span.context is not None
        key = (span.context.trace_id, span.context.span_id)
        with _LOCK:
            owner = self._owners.pop(key, None)
            if owner is not None:
                known = owner.open.pop(key, None) is not None
                if known and not owner.closed:
                    owner.ended.append(span)
                if known:  # or it was counted when its rollout closed
                    return
            runs = {spans.run for spans in _ACTIVE.copy()}
        if owner is not None:
            owner.refuse(span, LATE if owner.closed else TOO_MANY)
        elif runs and _is_step(span):
            for run in runs:
                run.count(LOST)

    def _owner(self, key: _Key) -> RolloutSpans | None:
        found = self._owners.get(key)
        return found or next((spans for spans in _ACTIVE.copy() if key in spans.keys), None)


def _is_step(span: ReadableSpan) -> bool:
    try:
        step = read_steps(converted(span)).step
    except UNREADABLE:
        return True
    return step is not None and step.kind != "agent"
