"""OpenTelemetry: the spans of a run, and the context that makes an agent's own spans their children.

Spans are written and sent here, not by the SDK (see `sinks.otlp`), whose global tracer provider belongs to
the agent; the SDK reads resource, sampler and limits from the environment, and carries the context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.records import Group, PhaseResult, Run, RunHeader
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.agents import ACTOR, COMMAND_OUTPUT
from pytest_tfgrpo.core.settings.telemetry import OTEL_CONTENT
from pytest_tfgrpo.core.trace_ids import span_id, trace_id, traceparent
from pytest_tfgrpo.telemetry.sinks.genai_spans import SpanWriter, span_count
from pytest_tfgrpo.telemetry.sinks.otlp import AttributeValue, envelope, request
from pytest_tfgrpo.telemetry.sinks.otlp_destination import destination
from pytest_tfgrpo.telemetry.sinks.otlp_sender import Sender
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent

if TYPE_CHECKING:
    from types import ModuleType

    from opentelemetry.trace import NonRecordingSpan, SpanContext

SCOPE = "pytest-tfgrpo"
QUEUE_MAX = 65536
BATCH_MAX = 1024
DELAY_MS = 2000
LENGTH = "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
PROVIDERS = {"claude": "anthropic", "codex": "openai"}
"""Of the models of coding agents, by what these print."""


def require_otel() -> None:
    """Raise SettingError, which names the extra to install, when there is no OpenTelemetry SDK."""
    try:
        found = find_spec("opentelemetry.sdk.trace")
    except ImportError:
        found = None
    if found is None:
        raise SettingError("otel needs OpenTelemetry; install it with: pip install 'pytest-tfgrpo[otel]'")


def open_telemetry(settings: Settings, environ: Mapping[str, str]) -> Telemetry | None:
    """Return where the spans of a run go, as the ``OTEL_*`` variables say; None where they switch it off.

    Raises SettingError where the extra is missing, or a variable says what cannot be.
    """
    require_otel()
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return None
    if exporter != "otlp":
        raise SettingError(f"OTEL_TRACES_EXPORTER={exporter!r} is not supported; set it to otlp, or to none")
    return Telemetry(settings, environ)


class Telemetry:
    """Sends the spans of one run; receives every record on the engine's thread."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Read the environment; nothing is sent and no thread starts before the first record."""
        from opentelemetry import context, trace
        from opentelemetry.sdk.resources import OTELResourceDetector

        found = OTELResourceDetector().detect().attributes
        described = {"service.name": SCOPE} | {key: _attribute(value) for key, value in found.items()}
        self._has_sampler = bool(environ.get("OTEL_TRACES_SAMPLER"))
        queue_max = _count(environ, "OTEL_BSP_MAX_QUEUE_SIZE", QUEUE_MAX)
        text_max = _count(environ, LENGTH, 0) or _count(environ, LENGTH.replace("SPAN_", ""), 0) or None
        self._content = SpanContent(on=OTEL_CONTENT.of(settings), text_max=text_max)
        self._agent = str(ACTOR.of(settings))
        printed = COMMAND_OUTPUT.of(settings)
        self._provider = PROVIDERS.get(printed) or self._agent.partition(":")[0]
        self._sender = Sender(
            destination(environ),
            partial(request, envelope(described, SCOPE, version("pytest-tfgrpo"))),
            queue_max=queue_max,
            batch_max=min(queue_max, _count(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH_MAX)),
            delay_s=_count(environ, "OTEL_BSP_SCHEDULE_DELAY", DELAY_MS) / 1000,
        )
        self._attach, self._detach = context.attach, context.detach
        self._within, self._span_type = trace.set_span_in_context, _span_type(trace)
        self._run_id, self._trace = "", b""
        self._sampled, self._flags = False, trace.TraceFlags.get_default()
        self._sent: Collection[str] = frozenset()
        self._writer: SpanWriter

    def begin(self, header: RunHeader, *, sent: Collection[str]) -> None:
        """Get ready for a run; `sent` has the ids of what an earlier process of it has sent."""
        self._run_id, self._sent, self._trace = header.run_id, sent, trace_id(header.run_id)
        self._sampled = not self._has_sampler or _is_sampled(self._trace)
        self._flags = type(self._flags)(self._sampled)
        self._writer = SpanWriter(
            header.run_id,
            agent=self._agent,
            provider=self._provider,
            content=self._content,
        )

    def traceparent(self, rollout_id: str) -> str:
        """Return the W3C trace context of a rollout's span."""
        return traceparent(self._trace, span_id("rollout", rollout_id), sampled=self._sampled)

    @contextmanager
    def around(self, rollout_id: str, prompt: Prompt) -> Iterator[None]:
        """Make the rollout's span the current one, for whatever its agent traces."""
        self._content.keep(rollout_id, prompt)
        token = self._attach(self._within(self._span_type(self, rollout_id)))
        try:
            yield
        finally:
            self._detach(token)

    def context_of(self, rollout_id: str) -> SpanContext:
        """Return what identifies a rollout's span to OpenTelemetry."""
        from opentelemetry import trace

        ids = int.from_bytes(self._trace), int.from_bytes(span_id("rollout", rollout_id))
        return trace.SpanContext(*ids, is_remote=True, trace_flags=self._flags)

    def __call__(self, record: object) -> None:
        """Send what a record finishes, unless an earlier process has."""
        if not self._sampled:
            return
        match record:
            case Group(group_id=group_id) if group_id not in self._sent and record.mode != "evidence":
                self._put(record)
            case PhaseResult(phase=phase) if f"{self._run_id}.e{phase.epoch}" not in self._sent:
                fresh = tuple(call for call in record.calls if call.key not in self._sent)
                self._put(replace(record, calls=fresh))
            case Run():
                self._put(record)

    def close(self) -> str:
        """Send what is left, waiting for a short time only; returns what was lost and why, or nothing."""
        lost = self._sender.close()
        reasons = ", ".join(f"{count} {reason}" for reason, count in lost.items())
        if len(lost) == 1:
            reasons = next(iter(lost))
        return f"telemetry: {sum(lost.values())} spans lost: {reasons}" if lost else ""

    def _put(self, record: Group | PhaseResult | Run) -> None:
        self._sender.put(span_count(record), partial(self._writer.spans, record, time.time_ns()))


def _span_type(trace: ModuleType) -> Callable[[Telemetry, str], NonRecordingSpan]:
    """Return the type of a rollout's span, which finds its ids when an agent needs them: most do not."""

    class RolloutSpan(trace.NonRecordingSpan):  # type: ignore[misc, name-defined]
        def __init__(self, telemetry: Telemetry, rollout_id: str) -> None:
            self._of = telemetry, rollout_id

        def get_span_context(self) -> SpanContext:
            telemetry, rollout_id = self._of
            return telemetry.context_of(rollout_id)

        def __repr__(self) -> str:
            return f"RolloutSpan({self._of[1]!r})"

    return RolloutSpan


def _is_sampled(trace: bytes) -> bool:
    """Return whether the sampler of the environment keeps a run: all of it, or nothing."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Decision

    sampler = TracerProvider(shutdown_on_exit=False).sampler
    decision = sampler.should_sample(None, int.from_bytes(trace), "tfgrpo.run").decision
    return decision is Decision.RECORD_AND_SAMPLE


def _attribute(value: object) -> AttributeValue:
    if isinstance(value, str | bool | int | float):
        return value
    return tuple(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _count(environ: Mapping[str, str], name: str, default: int) -> int:
    """Return the number > 0 that a variable holds, or the default; raises SettingError."""
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise SettingError(f"{name} must be a whole number > 0, not {text!r}")
    return int(text)
