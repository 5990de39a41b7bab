"""Exporters of OpenTelemetry, the service, and what is in the bus after it: also when it is killed."""

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from support.loop_service import TOKEN
from support.service.exporters import exporter, made
from support.services import FakeIntake, Running

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.service import app


def test_an_exporter_comes_again_while_the_bus_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "RETRY_AFTER_S", 0)
    failures = [BusError("the disk is full")] * 2

    def fail() -> None:
        if failures:
            raise failures.pop()

    intake = FakeIntake(fail)
    with Running(intake, token=TOKEN) as running:
        sending = exporter(running.url, timeout=100)
        assert sending.export(made(1)) is SpanExportResult.SUCCESS
        sending.shutdown()
    assert (len(intake.found), failures) == (1, [])
