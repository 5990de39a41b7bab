"""The service as a server: its end, slow clients, and what an address needs."""

import http.client
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from support.services import ClosingBus, FakeIntake, Running, service_apis

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits
from pytest_tfgrpo.production.service.run import run_service
from pytest_tfgrpo.production.service.server import address_of
from pytest_tfgrpo.telemetry.traces.otlp import otlp_protobuf

FEEDBACK = "/feedback"
HURRIED = ServiceLimits(head_s=0.2, body_s=0.2)


class Assembler:
    def __init__(self, bus: ClosingBus) -> None:
        self.stepped = threading.Event()
        self._bus = bus
        self.closed_before_bus = False

    def step(self) -> int:
        self.stepped.set()
        return 0

    def close(self) -> None:
        self.closed_before_bus = not self._bus.closed


def post(running: Running, body: bytes, **headers: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=100)
    with closing(client):
        client.request("POST", FEEDBACK, body, {"Content-Type": "application/json", **headers})
        return client.getresponse().status


def connect_forever(running: Running) -> None:
    while True:
        socket.create_connection(("127.0.0.1", running.port), timeout=100).close()


def ended(running: Running, *parts: bytes) -> bytes:
    """Send parts and nothing more, and return what comes until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=100) as client:
        for part in parts:
            client.sendall(part)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_what_has_begun_is_answered_and_then_all_is_closed() -> None:
    begun, going = threading.Event(), threading.Event()
    intake, bus = FakeIntake(before=lambda: begun.set() or going.wait(100)), ClosingBus()
    role, answers = Assembler(bus), []
    with Running(intake, roles=[role], bus=bus) as running:
        asking = threading.Thread(target=lambda: answers.append(post(running, b"{}")))
        asking.start()
        assert begun.wait(100)
        assert role.stepped.wait(100)
        running.stop()
        with pytest.raises(ConnectionError):
            connect_forever(running)
        assert not bus.closed
        going.set()
        asking.join(100)
    assert answers == [200]
    assert (role.closed_before_bus, bus.closed) == (True, True)


def test_many_clients_are_served_at_once() -> None:
    intake = FakeIntake()
    with Running(intake) as running:
        threads = [threading.Thread(target=post, args=(running, b"[1, 2]")) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
    assert len(intake.kept) == 80


@pytest.fixture(scope="module")
def hurried() -> Iterator[Running]:
    with Running(FakeIntake(), limits=HURRIED) as running:
        yield running


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"\r\n"],
        [b"POST /feedback HTTP/1.1\r\nHost: localhost\r\n"],
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET"],
        [b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n1"],
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000],
    ],
)
def test_a_client_that_does_not_finish_its_request_is_left(hurried: Running, parts: list[bytes]) -> None:
    with suppress(ConnectionResetError):  # of what it did not read
        ended(hurried, *parts)


def test_a_body_that_does_not_come_is_answered_before_the_connection_ends() -> None:
    head = b"POST /feedback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Running(FakeIntake(), limits=ServiceLimits(body_s=0.2)) as running:
        answer = ended(running, head, b"Content-Length: 5\r\n\r\n1")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"error": "the body did not arrive in time' in answer


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_a_large_body_is_refused_with_an_answer_that_arrives(connection: str) -> None:
    with Running(FakeIntake(), limits=ServiceLimits(body_bytes=1000)) as running:
        assert [post(running, bytes(5_000_000), Connection=connection) for _ in range(3)] == [413] * 3


@pytest.mark.parametrize("raw", [b"\x00\x01\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"POST \xff HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_answered_with_400(raw: bytes) -> None:
    with Running(FakeIntake()) as running:
        assert ended(running, raw).startswith(b"HTTP/1.1 400 ")


def test_an_address_that_is_taken_or_open_to_all_is_an_error_and_the_bus_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for host, message in (("127.0.0.1", f"cannot listen on port {port}"), ("0.0.0.0", "no token")):
            bus = ClosingBus()
            with pytest.raises(SettingError, match=message):
                run_service(
                    bus=bus,
                    intake=FakeIntake(),
                    apis=service_apis(None),
                    address=ListeningAddress(host=host, port=port),
                    ready=print,
                    report=print,
                )
            assert bus.closed


def test_a_signal_stops_the_service_and_is_given_back_what_it_did_before() -> None:
    def leave(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, leave)
    bus = ClosingBus()
    try:
        run_service(
            bus=bus,
            intake=FakeIntake(),
            apis=service_apis(None),
            address=ListeningAddress(port=0),
            ready=lambda url: os.kill(os.getpid(), signal.SIGTERM),
            report=print,
        )
        assert signal.getsignal(signal.SIGTERM) is leave
    finally:
        signal.signal(signal.SIGTERM, before)
    assert bus.closed


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("starlette.applications", "starlette"),
        ("uvicorn", "uvicorn and httptools"),
        ("opentelemetry.proto.collector.trace.v1.trace_service_pb2", "opentelemetry-proto"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    package: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    otlp_protobuf._requests.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"needs? {message}; install .*pytest-tfgrpo\[serve\]"):
        run_service(
            apis=service_apis(None),
            bus=ClosingBus(),
            intake=FakeIntake(),
            address=ListeningAddress(port=0),
            ready=print,
            report=print,
        )


@pytest.mark.parametrize(
    ("name", "url"),
    [(("127.0.0.1", 4318), "http://127.0.0.1:4318"), (("::1", 4318, 0, 0), "http://[::1]:4318")],
)
def test_the_url_of_an_address_of_version_6_has_brackets(name: tuple[object, ...], url: str) -> None:
    listener: Any = SimpleNamespace(getsockname=lambda: name)
    assert address_of(listener) == url
