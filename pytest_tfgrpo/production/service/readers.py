"""What reads the bodies of OTLP, by path."""

from __future__ import annotations

from types import MappingProxyType

from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp, read_otlp_logs

READERS = MappingProxyType({"/v1/traces": read_otlp, "/v1/logs": read_otlp_logs})
