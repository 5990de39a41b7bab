"""What the tests of telemetry/sinks/test_otlp_sender.py share with the slow ones."""

import time
from collections.abc import Iterable
from functools import partial

from pytest_tfgrpo.telemetry.sinks.otlp_destination import destination
from pytest_tfgrpo.telemetry.sinks.otlp_sender import Sender
from support.collector import Collector


def lines(spans: Iterable[bytes]) -> bytes:
    return b"\n".join(spans)


class Items:
    """A sender of items that become so many spans; a negative one cannot be encoded."""

    def __init__(
        self,
        url: str,
        *,
        queue_max: int = 1000,
        batch_max: int = 10,
        delay_s: float = 60,
        timeout: str = "100",
    ) -> None:
        found = destination({"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": timeout})
        self.encoded = 0
        self._sender = Sender(found, lines, queue_max=queue_max, batch_max=batch_max, delay_s=delay_s)
        self.close = self._sender.close

    def put(self, item: int) -> None:
        self._sender.put(abs(item), partial(self._encode, item))

    def _encode(self, item: int) -> list[bytes]:
        if item < 0:
            raise ValueError(item)
        self.encoded += item
        return [b"x" * item] * item


def received(collector: Collector) -> list[int]:
    return [len(body.split(b"\n")) for body in collector.bodies]


def wait_for(collector: Collector, requests: int) -> None:
    deadline = time.monotonic() + 100
    while len(collector.paths) < requests and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(collector.paths) >= requests
