"""Exporters of OpenTelemetry, the service, and what is in the bus after it: also when it is killed."""

from opentelemetry.sdk.trace.export import SpanExportResult
from support.loop_service import TOKEN
from support.service.exporters import exporter, made
from support.services import FakeIntake, Running

from pytest_tfgrpo.core.errors import BusError


def test_an_exporter_comes_again_while_the_bus_fails() -> None:
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
