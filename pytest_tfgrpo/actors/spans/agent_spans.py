"""Spans that an agent in this process emits during one call, for the frames that it does not report."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.actors.output import total_max_bytes
from pytest_tfgrpo.actors.spans.span_frames import frames_of_spans
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.telemetry.traces.provider import installed_provider
from pytest_tfgrpo.telemetry.traces.registry import spans_of_rollout
from pytest_tfgrpo.telemetry.traces.span_counts import NO_PROVIDER, UNREADABLE_SPAN, SpanCounts

if TYPE_CHECKING:
    from pytest_tfgrpo.telemetry.traces.rollout_spans import RolloutSpans

API = "opentelemetry.trace"
UNUSED = "unused_spans"
"""Key in `extra` that counts what was not used of the spans of a rollout, by reason."""


class AgentSpans:
    """The spans of one call; nothing at all where the agent has not loaded OpenTelemetry."""

    def __init__(self, call: ActorCall) -> None:
        self._max_bytes = total_max_bytes(call.answer_max_bytes)
        self._spans: RolloutSpans | None = None
        self._run = call.span_counts or SpanCounts()
        self._came_late = False
        if API in sys.modules:
            self._spans = spans_of_rollout(self._run)

    @property
    def unused(self) -> Mapping[str, int]:
        """What was not used of the spans of this call, by reason."""
        if self._spans is None:
            return {NO_PROVIDER: 1} if self._came_late else {}
        return self._spans.unused

    def around(self) -> AbstractContextManager[None]:
        """Return what surrounds the agent, wherever it runs."""
        return nullcontext() if self._spans is None else self._spans.around()

    def call(self, agent: Callable[[], Any]) -> Any:
        """Return what an agent returns on a thread that has not the context of this one."""
        with self.around():
            value = agent()
        return self._awaited(value) if self._spans is not None and inspect.isawaitable(value) else value

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        with self.around():
            return await value

    def frames(self) -> tuple[Frame, ...]:
        """Return what the spans until now amount to; later ones are not used."""
        if self._spans is None:
            self._count_if_provider_came_late()
            return ()

        self._spans.run.wanted = True
        found = self._spans.take()
        try:
            return frames_of_spans(found, max_bytes=self._max_bytes, count=self._spans.count)
        except Exception:  # noqa: BLE001 - what a span holds is no fault of the agent's answer
            self._spans.count(UNREADABLE_SPAN)
            return ()

    def _count_if_provider_came_late(self) -> None:
        """Count a call in which a tracer provider was installed: nobody knows how many spans passed by."""
        if self._came_late or API not in sys.modules:
            return
        if installed_provider() is not None:
            self._came_late = self._run.wanted = True
            self._run.count(NO_PROVIDER)

    def close(self) -> None:
        """Take no more."""
        if self._spans is not None:
            self._spans.drop()
