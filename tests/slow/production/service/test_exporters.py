"""Exporters of OpenTelemetry, the service, and what is in the bus after it: also when it is killed."""

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from support.campaign import Campaign
from support.loop_service import LoopProcess
from support.service.exporters import SECRET, exporter, made

from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.span_events import decode_spans
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan


def ids(spans: Sequence[ReadableSpan]) -> list[tuple[str, str]]:
    contexts = [span.get_span_context() for span in spans]
    return [(f"{one.trace_id:032x}", f"{one.span_id:016x}") for one in contexts]


def stored(path: Path) -> Iterator[TraceSpan]:
    bus = open_bus(f"embedded:{path}")
    for event in bus.replay("RL_SPANS"):
        yield from decode_spans(event.data)[1] or []
    bus.close()


def trajectories(path: Path) -> list[str]:
    bus = open_bus(f"embedded:{path}")
    found = [json.loads(event.data)["trajectory_id"] for event in bus.replay("RL_TRAJECTORIES")]
    bus.close()
    return found


def wait_for(path: Path, count: int) -> None:
    until = time.monotonic() + 100
    while len(trajectories(path)) < count and time.monotonic() < until:
        time.sleep(0.1)


@pytest.mark.parametrize("gzip", [False, True])
def test_what_an_exporter_sends_is_in_the_bus_without_its_secrets(tmp_path: Path, gzip: bool) -> None:
    path, spans = tmp_path / "bus.db", made(3)
    with LoopProcess(path) as service:
        sending = exporter(service.url, timeout=100, gzip=gzip)
        assert [sending.export(spans), sending.export(spans)] == [SpanExportResult.SUCCESS] * 2
        sending.shutdown()
        assert service.end(signal.SIGTERM) == 0
    found = list(stored(path))
    assert [span.key for span in found] == ids(spans)
    assert {span.resource["service.name"] for span in found} == {"shop"}
    assert "the key is [redacted:" in str(found[0].attributes["gen_ai.agent.description"])
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert SECRET.encode() not in files


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_what_was_acknowledged_survives_kills_as_one_trajectory_each(
    tmp_path: Path, campaign: Campaign
) -> None:
    path, random = tmp_path / "bus.db", campaign.random("service")
    kills = campaign.count(4, 200)
    acknowledged: list[ReadableSpan] = []
    ended = threading.Event()

    def send(service: LoopProcess) -> None:
        sending = exporter(service.url)
        while not ended.is_set():
            batch = made(5)
            while sending.export(batch) is not SpanExportResult.SUCCESS:
                time.sleep(0.01)
            acknowledged.extend(batch)
        sending.shutdown()

    with LoopProcess(path) as service:
        thread = threading.Thread(target=send, args=(service,), daemon=True)
        thread.start()
        try:
            for _ in range(kills):
                time.sleep(random.random())
                assert service.end(signal.SIGKILL) == -signal.SIGKILL
                service.start()
        finally:
            ended.set()
            thread.join(100)
        wait_for(path, len({span.key for span in stored(path)}))
        assert service.end(signal.SIGTERM) == 0
    found = [span.key for span in stored(path)]
    assert len(acknowledged) >= 5
    assert set(ids(acknowledged)) <= set(found)
    assert len(found) == len(set(found))
    made_of = [trajectory_id(*key) for key in found]
    assert sorted(trajectories(path)) == sorted(made_of)
