"""Settings of the spans that a run sends."""

from __future__ import annotations

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import parse_bool

# fmt: off
OTEL = Setting("otel", "none", parse_bool, False,
    "send OpenTelemetry spans; the OTEL_* variables say where to", "bool")
OTEL_CONTENT = Setting("otel_content", "none", parse_bool, False,
    "put prompts, answers and tool arguments into the spans, without secrets", "bool")
