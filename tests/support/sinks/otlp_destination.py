"""What the tests of telemetry/sinks/test_otlp_destination.py share with the slow ones."""

from pytest_tfgrpo.telemetry.sinks.otlp_destination import Destination, destination
from support.collector import Collector


def read(**variables: str) -> Destination:
    return destination({f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()})


def send(collector: Collector, body: bytes = b"", **variables: str) -> int:
    found = read(ENDPOINT=collector.url, TIMEOUT="5", **variables)
    connection = found.connect(5)
    try:
        return found.send(connection, body)
    finally:
        connection.close()
