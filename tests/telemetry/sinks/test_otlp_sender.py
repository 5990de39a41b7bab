"""The sender: what it loses, it counts, and it never keeps its caller waiting."""

import threading
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


@pytest.fixture
def hurried(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Collector:
    """Return a collector that the end of a run hardly waits for."""
    monkeypatch.setattr(otlp_sender, "FLUSH_S", 0.05)
    return collector


def test_full_batches_go_at_once_and_the_rest_at_the_end(collector: Collector) -> None:
    one = Items(collector.url)
    for _ in range(8):
        one.put(3)
    while len(collector.bodies) < 2:
        time.sleep(0.005)
    assert received(collector) == [10, 10]
    assert one.close() == {}
    assert received(collector) == [10, 10, 4]
    assert {headers.get("connection", "") for headers in collector.headers} == {""}


def test_nothing_to_send_starts_no_thread(collector: Collector) -> None:
    before = threading.active_count()
    one = Items(collector.url)
    assert threading.active_count() == before
    assert one.close() == {}
    assert collector.paths == []


def test_closing_twice_says_the_same_and_what_comes_later_is_lost(collector: Collector) -> None:
    one = Items(collector.url)
    one.put(3)
    assert one.close() == one.close() == {}
    one.put(2)
    assert one.close() == {"the collector is too slow": 2}


def test_what_cannot_be_encoded_is_lost_alone(collector: Collector) -> None:
    one = Items(collector.url)
    for item in (3, -1, 3, -2):
        one.put(item)
    assert one.close() == {"not encoded (ValueError)": 3}
    assert received(collector) == [6]


def test_a_request_stays_small_where_spans_are_large(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_sender, "BATCH_MAX_BYTES", 20)
    one = Items(collector.url, batch_max=500)
    for _ in range(4):
        one.put(8)
    assert one.close() == {}
    assert sum(received(collector)) == 32
    assert max(received(collector)) == 3


def test_what_waits_is_bounded_in_bytes_too(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_sender, "QUEUE_MAX_BYTES", 150)
    one = Items(collector.url, batch_max=500)
    for _ in range(4):
        one.put(10)
    assert one.close() == {"the collector is too slow": 20}
    assert received(collector) == [20]


def test_what_is_sent_waits_no_more(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_sender, "QUEUE_MAX_BYTES", 150)
    one = Items(collector.url)
    for n in range(1, 5):
        one.put(10)
        wait_for(collector, n)
    assert one.close() == {}


@pytest.mark.parametrize(
    ("conduct", "reason"),
    [
        (Conduct(status=500), "HTTP 500"),
        (Conduct(status=503), "HTTP 503"),
        (Conduct(raw=b"garbage\r\n\r\n"), "the answer is not HTTP (BadStatusLine)"),
        (Conduct(body=b"<html>", content_type="text/html"), "the answer is text/html: not an OTLP receiver"),
        (Conduct(rejected=100), "rejected by the collector"),
    ],
)
def test_every_span_that_is_not_taken_is_counted(collector: Collector, conduct: Conduct, reason: str) -> None:
    collector.conduct = conduct
    one = Items(collector.url)
    for _ in range(9):
        one.put(5)
    assert one.close() == {reason: 45}


@pytest.mark.parametrize("conduct", [Conduct(silent=True), Conduct(delay_s=1000)])
def test_what_is_not_answered_at_the_end_is_counted(hurried: Collector, conduct: Conduct) -> None:
    hurried.conduct = conduct
    one = Items(hurried.url)
    for _ in range(9):
        one.put(5)
    assert one.close() == {"not sent 0.05 s after the end of the run": 45}


def test_nobody_listening_loses_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_sender, "FLUSH_S", 100.0)
    with Collector() as gone:
        pass
    one = Items(gone.url)
    for _ in range(9):
        one.put(5)
    assert one.close() == {"connection refused": 45}


def test_a_receiver_that_comes_back_loses_only_what_it_missed(collector: Collector) -> None:
    collector.conduct = Conduct(status=500, failures=1)
    one = Items(collector.url)
    for _ in range(5):
        one.put(10)
    assert one.close() == {"HTTP 500": 10}
    assert received(collector) == [10] * 4


def test_a_receiver_that_hangs_fills_the_queue_and_no_more(hurried: Collector) -> None:
    hurried.conduct = Conduct(silent=True)
    one = Items(hurried.url, queue_max=100)
    for _ in range(1000):
        one.put(10)
    lost = one.close()
    assert sum(lost.values()) == 10_000
    assert one.encoded < 500


def test_a_thread_that_was_given_up_ends(hurried: Collector) -> None:
    hurried.conduct = Conduct(silent=True)
    others = set(threading.enumerate())
    one = Items(hurried.url, timeout="1000")
    one.put(10)
    wait_for(hurried, 1)
    (own,) = {t for t in set(threading.enumerate()) - others if t.name == "tfgrpo-otel"}
    one.close()
    own.join(100)
    assert not own.is_alive()
