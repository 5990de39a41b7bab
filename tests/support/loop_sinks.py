"""Sinks of the feedback loop for tests: one in memory, the role that fills one, and a fake ClickHouse."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.sinks.follower import Sink, SinkFollower
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import RowReader, SinkRow
from pytest_tfgrpo.storage.event_store import BusEvent
from support.buses import Clock

SCRUBBER = LoopScrubber(b"k" * 32)
TODAY = datetime.fromisoformat("2025-12-09T00:00:00Z").timestamp()
"""A day after the events of `support.loop_events`."""
JOB = "0c9f6a8e-0000-4000-8000-000000000001"


class MemorySink:
    """See `Sink`."""

    name, every_s = "archive", 0.0

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        self.rows: list[SinkRow] = []
        self.again: list[bool] = []
        self.removals: list[Removal] = []
        self.expired: list[str] = []
        self.dead = False

    def write(self, rows: Sequence[SinkRow], *, again: bool) -> int:
        self._answer()
        self.rows += rows
        self.again.append(again)
        return 0

    def remove(self, removal: Removal) -> None:
        self._answer()
        self.removals.append(removal)

    def expire(self, before: str) -> None:
        self.expired.append(before)

    def close(self) -> None:
        pass

    def _answer(self) -> None:
        if self.dead:
            raise StoreError("the sink is dead")


def follower(
    bus: Bus, sink: Sink, owner: str = "a", clock: Clock | None = None, wall: float = TODAY
) -> SinkFollower:
    """Return the role that fills a sink."""
    return SinkFollower(bus, sink, SCRUBBER, owner, clock=clock or Clock(), wall=lambda: wall)


def fill(role: SinkFollower) -> None:
    """Have a role take all there is."""
    while role.step():
        pass


def row(stream: str, event: BusEvent, arrived: float = TODAY) -> SinkRow:
    """Return the row of an event as it comes from the bus."""
    stored = BusEvent(id=event.id, subject=event.subject, time=event.time, data=event.data, arrived=arrived)
    found = RowReader(SCRUBBER).read(stream, stored)
    assert found is not None
    return found


def training_request() -> BusEvent:
    """Return a request to train."""
    data = {
        "training_job_id": JOB, "timestamp": "2025-12-08T13:00:00Z", "trigger_reason": "manual",
        "requester": "ada", "training_config": {"algorithm": "tfgrpo"},
    }  # fmt: skip
    return _event("agent.rl.training.request.v1", "request", data)


def training_status(status: str = "failed") -> BusEvent:
    """Return how a job goes."""
    data = {
        "training_job_id": JOB, "timestamp": "2025-12-08T13:15:00Z", "status": status,
        "progress": {"percent_complete": 66.67}, "metrics": {"current": {"reward_mean": 0.82}},
        "resource_usage": {"cost_usd": 1.5}, "error": {"code": "DATA", "message": "a secret text"},
    }  # fmt: skip
    return _event("agent.rl.training.status.v1", f"status {status}", data)


def deployed(state: str = "canary") -> BusEvent:
    """Return a transition of a version."""
    data = {
        "deployment_id": derived_id("deployment"), "timestamp": "2025-12-08T14:00:00Z",
        "model_info": {"model_id": "v2"},
        "deployment_config": {"rollout_strategy": "canary", "traffic_percentage": 10.0},
        "metadata": {"state": state, "deployed_by": "ada", "previous_model": "v1", "reason": "a long text"},
    }  # fmt: skip
    return _event("agent.rl.model.deployed.v1", f"deployed {state}", data)


def audit(action: str, name: str = "", **said: Json) -> BusEvent:
    """Return a record of the audit."""
    return _event("agent.rl.audit.v1", f"{action} {name} {said}", {"action": action, **said})


def _event(subject: str, name: str, data: Json) -> BusEvent:
    return BusEvent(
        id=derived_id(name), subject=subject, time="2025-12-08T13:00:00.000Z", data=json.dumps(data).encode()
    )


class FakeClickHouse:
    """Keeps inserted lines by table and every statement; refuses what it is told to."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Json]] = {}
        self.statements: list[str] = []
        self.users: set[str] = set()
        self.poison = ""
        """What no row may hold."""
        self.fault: tuple[int, str] | None = None
        """Code and text of what every insert answers."""

    def answer(self, query: str, body: bytes) -> tuple[int, int, str]:
        """Return HTTP status, code of an exception, and text."""
        self.statements.append(query)
        if query.startswith("SELECT version()"):
            return 200, 0, "26.2.1.1\tUTC"
        if query.startswith("INSERT INTO") and "JSONEachRow" in query:
            if self.fault:
                return 500, *self.fault
            lines = body.decode().splitlines()
            if self.poison and any(self.poison in line for line in lines):
                return 400, 117, "Code: 117. DB::Exception: Cannot parse it. (INCORRECT_DATA)"
            table = query.split()[2].strip("`")
            self.tables.setdefault(table, []).extend(map(json.loads, lines))
        return 200, 0, "0" if query.startswith("SELECT") and "system.settings" not in query else ""


@contextmanager
def fake_clickhouse() -> Iterator[tuple[FakeClickHouse, str]]:
    """Yield a fake server, and its address without a scheme."""
    fake = FakeClickHouse()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b"".join(iter(self._chunk, b""))
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            if not query:
                head, _, body = body.partition(b"\n")
                query = head.decode()
            fake.users.add(self.headers.get("Authorization") or "")
            status, code, text = fake.answer(query, body)
            self.send_response(status)
            if code:
                self.send_header("X-ClickHouse-Exception-Code", str(code))
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def _chunk(self) -> bytes:
            size = int(self.rfile.readline(), 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            return data

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake, f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
