"""The sender: what it loses, it counts, and it never keeps its caller waiting."""

import time
from collections.abc import Iterator

import pytest
from support.collector import Collector, Conduct
from support.sinks.otlp_sender import Items, received, wait_for

from pytest_tfgrpo.telemetry.sinks import otlp_sender


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(otlp_sender, "FLUSH_S", 100.0)
    with Collector() as running:
        yield running


def test_an_incomplete_batch_waits_for_the_delay(collector: Collector) -> None:
    one = Items(collector.url, delay_s=0.05)
    one.put(3)
    while not collector.bodies:
        time.sleep(0.005)
    assert received(collector) == [3]
    assert one.close() == {}


def test_a_request_is_repeated_where_that_may_help(collector: Collector) -> None:
    collector.conduct = Conduct(status=503, failures=2)
    one = Items(collector.url)
    one.put(10)
    wait_for(collector, 3)
    assert one.close() == {}
    assert received(collector) == [10]
