"""Readers of spans by where these come from, each loaded when it is first used: few runs meet a span."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tfgrpo.telemetry.traces.otlp.otlp import OtlpForm
    from pytest_tfgrpo.telemetry.traces.rollout_spans import RolloutSpans
    from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts
    from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan


def spans_of_rollout(counts: SpanCounts) -> RolloutSpans | None:
    """Return what takes the spans of one call in this process; None where no provider is installed."""
    from pytest_tfgrpo.telemetry.traces.rollout_spans import open_rollout_spans

    return open_rollout_spans(counts)


def read_request(signal: str, body: bytes, form: OtlpForm) -> list[TraceSpan | RefusedSpan]:
    """Return the spans of a request of OTLP; raises SettingError where opentelemetry-proto is missing."""
    from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp, read_otlp_logs

    read = read_otlp if signal == "traces" else read_otlp_logs
    return read(body, form=form, place="otlp")
