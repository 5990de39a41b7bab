"""Runs of agents as they happen: a span processor of OpenTelemetry's SDK.

Spans end children first, and frameworks set attributes late: which agent is the outermost shows when a span
ends, from those around it that are still open.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from pytest_tfgrpo.telemetry.traces.dialects.dialects import is_agent, read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.provider import processor_type
from pytest_tfgrpo.telemetry.traces.sdk_spans import MOST_OPEN, MOST_SPANS, converted, keys_of, marks_of
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, SpanKey, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

_DEEPEST = 1000
"""Spans around a span that are looked at."""


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
        key, parent = keys_of(span)
        around = self._around()
        outer = None if parent is None else self._open.get(parent)
        if around is None and outer is not None:
            around = outer.around
        while len(self._open) >= MOST_OPEN:
            with suppress(RuntimeError, StopIteration):  # others changed it between the two calls
                self._open.pop(next(iter(self._open)), None)
        self._open[key] = _OpenSpan(span, parent, around, [])

    def ended(self, span: ReadableSpan) -> None:
        key, _ = keys_of(span)
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
        forest.take([*spans, *(marks_of(one.span) for one in path[1:])])
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
