"""Programs that print no frames, and send spans to the receiver."""

import asyncio
import http.client
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.otlp_spans import line, span

from pytest_tfgrpo.actors.command.command import CommandActor
from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.actors.spans import program_spans
from pytest_tfgrpo.actors.spans.program_spans import ProgramSpans, wants_receiver
from pytest_tfgrpo.actors.spans.span_frames import frames_of_spans
from pytest_tfgrpo.actors.spans.span_receiver import BODY_BYTES, ROLLOUT_BYTES, open_receiver
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan

MakeCall = Callable[..., ActorCall]


def tool(
    number: int, name: str, trace: str | None = None, parent: int | None = None, **fields: Any
) -> dict[str, Any]:
    made = span(number, "execute_tool", parent=parent, attributes={"gen_ai.tool.name": name}, **fields)
    return made | ({} if trace is None else {"traceId": trace})


class Raw:
    """Speaks to the receiver as a process that is no agent of ours might."""

    def __init__(self, call: ActorCall) -> None:
        self.spans = ProgramSpans(call)
        found = self.spans.variables({}, reachable=True)
        self.url = urlsplit(found["OTEL_EXPORTER_OTLP_ENDPOINT"])
        self.trace = found["TRACEPARENT"].split("-")[1]

    def post(self, body: bytes, *, path: str | None = None, **headers: str) -> int:
        link = http.client.HTTPConnection("127.0.0.1", self.url.port or 0, timeout=100)
        try:
            given = {"Content-Type": "application/json", **headers}
            link.request("POST", self.url.path + "/v1/traces" if path is None else path, body, given)
            return link.getresponse().status
        finally:
            link.close()

    def names(self) -> list[str]:
        asyncio.run(self.spans.settle())
        return [frame.name for frame in self.spans.frames()]


@pytest.fixture
def raw(make_call: MakeCall) -> Callable[[], Raw]:
    counts = SpanCounts()
    counts.wanted = True
    return lambda: Raw(make_call(span_counts=counts))


def test_a_rollout_takes_no_more_spans_once_its_program_is_done_however_that_ends(
    make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[ProgramSpans] = []

    async def crash(self: object, call: ActorCall, spans: ProgramSpans) -> None:
        spans.variables({}, reachable=True)
        seen.append(spans)
        raise AssertionError

    monkeypatch.setattr(CommandActor, "_ask", crash)
    with pytest.raises(AssertionError):
        asyncio.run(open_actor("command:true", root=tmp_path, settings={})(make_call()))
    (spans,) = seen
    assert spans._inbox is not None
    assert spans._inbox.token not in open_receiver()._open


def test_nobody_writes_into_a_rollout_without_its_address(raw: Callable[[], Raw]) -> None:
    one = raw()
    body = line(tool(1, "forged")).encode()
    for path in (
        "/v1/traces",
        "/",
        "/x/v1/traces",
        f"/{'A' * 22}/v1/traces",
        f"/../{one.url.path}/v1/traces",
    ):
        assert one.post(body, path=path) == 404
    assert one.names() == []
    assert one.spans._run.warnings == [
        "spans of the agent that became no frames: 5 foreign_request (sent to no rollout's address)"
    ]


def test_spans_of_another_rollout_and_after_the_end_are_counted(raw: Callable[[], Raw]) -> None:
    one, two = raw(), raw()
    assert two.post(line(tool(1, "mine", two.trace), tool(2, "stray", one.trace)).encode()) == 200
    assert two.post(line(tool(3, "own trace", "ab" * 16)).encode()) == 200
    assert sorted(two.names()) == ["mine", "own trace"]
    assert two.spans.unused == {"other_rollout": 1}
    assert two.post(line(tool(4, "late")).encode()) == 404
    (warning,) = two.spans._run.warnings
    assert "1 late" in warning


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", ""),
        (b"\0" * 5000, ""),
        (b"GET / HTTP/1.1\r\n\r\n", ""),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
        (b"POST " + b"/" * 40_000, ""),
        (b"POST /PATH/v1/traces HTTP/1.1\r\n\r\n", "no_length"),
        (b"POST /PATH/v1/traces HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "no_length"),
        (b"POST /PATH/v1/traces HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "no_length"),
        (b"POST /PATH/v1/traces HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", "no_length"),
        (b"POST /PATH/v1/traces HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES + 1), "too_large"),
        (b"POST /PATH/v1/traces HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf", "cut_off"),
    ],
    ids=range(11),
)
def test_hostile_bytes_are_refused_and_the_next_request_is_served(
    raw: Callable[[], Raw], sent: bytes, reason: str
) -> None:
    one = raw()
    with socket.create_connection(("127.0.0.1", one.url.port or 0), timeout=100) as link:
        link.sendall(sent.replace(b"/PATH", one.url.path.encode()))
        link.shutdown(socket.SHUT_WR)
        answer = link.recv(100)
        assert not answer.startswith(b"HTTP/1.1 200")
    assert one.post(line(tool(1, "count")).encode()) == 200
    assert one.names() == ["count"]
    assert dict(one.spans.unused) == ({reason: 1} if reason else {})


def test_a_rollout_keeps_a_bounded_number_of_bytes(
    raw: Callable[[], Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.actors.spans.span_receiver.ROLLOUT_BYTES", 4000)
    one = raw()
    body = line(tool(1, "x" * 3000)).encode()
    assert [one.post(body), one.post(body)] == [200, 413]
    assert one.spans._inbox is not None
    assert (len(one.spans._inbox.requests), ROLLOUT_BYTES) == (1, 2**26)
    assert one.names() == ["x" * 3000]
    assert one.spans.unused == {"too_large": 1}


def test_large_content_is_read_apart_from_the_loop_and_cut_to_what_frames_may_have(
    raw: Callable[[], Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_spans, "INLINE_BYTES", 1000)
    one = raw()
    calls = [tool(n, f"{n}") for n in range(1, 4)]
    for call in calls[1:]:
        call["attributes"].append({"key": "gen_ai.tool.call.result", "value": {"stringValue": "y" * 5000}})
    assert one.post(line(*calls).encode()) == 200
    assert one.names() == ["1", "2"]
    assert one.spans.unused == {"too_large": 1}


def test_an_address_is_given_only_where_nobody_else_has_one(make_call: MakeCall) -> None:
    assert wants_receiver({})
    assert wants_receiver({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "false"})
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_SDK_DISABLED": "true",
    }.items():
        assert not wants_receiver({name: value})
    traced = ProgramSpans(make_call(traceparent=lambda: "00-a-b-01"))
    assert traced.variables({}, reachable=True) == {"TRACEPARENT": "00-a-b-01"}
    assert ProgramSpans(make_call()).variables({}, reachable=False) == {}


@pytest.mark.parametrize(("network", "given"), [("host", True), ("loopback", False), ("none", False)])
def test_in_a_sandbox_only_one_with_the_hosts_network_has_an_address(
    tmp_path: Path, make_call: MakeCall, network: str, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.sandbox.programs.sandbox_settings.open_bwrap", lambda: "bwrap")
    settings = {"sandbox": "bwrap", "sandbox_network": network}
    actor: Any = open_actor("command:sh agent", root=tmp_path, settings=settings)
    call = make_call()
    found = actor._environment(call, call.workspace.path, ProgramSpans(call))
    assert ("OTEL_EXPORTER_OTLP_ENDPOINT" in found) == ("TRACEPARENT" in found) == given


def test_without_protobuf_json_is_asked_for_and_the_extra_is_named(
    raw: Callable[[], Raw], make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_tfgrpo.core.errors import SettingError
    from pytest_tfgrpo.telemetry.traces.otlp import otlp

    def missing(body: bytes, place: str) -> Any:
        raise SettingError("opentelemetry-proto is missing")

    monkeypatch.setattr(otlp, "spans_of_protobuf", missing)
    monkeypatch.setattr(program_spans, "find_spec", lambda name: None)
    assert (
        ProgramSpans(make_call()).variables({}, reachable=True)["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/json"
    )
    one = raw()
    assert one.post(b"x", **{"Content-Type": "application/x-protobuf"}) == 200
    assert one.names() == []
    assert "pip install 'pytest-tfgrpo[otel]'" in one.spans._run.warnings[0]


def test_all_rollouts_of_a_process_share_one_receiver() -> None:
    assert open_receiver() is open_receiver()


def test_a_frame_says_when_its_call_began_to_the_millisecond() -> None:
    begun = [1_700_000_000_007_000_000, 1_700_000_000_250_999_999]
    spans = [
        TraceSpan(
            key=("a" * 32, f"{n:016x}"),
            parent="",
            name="call",
            start_ns=start_ns,
            end_ns=start_ns + 1_500_000,
            attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool{n}"},
        )
        for n, start_ns in enumerate(begun)
    ]
    frames = frames_of_spans(spans, max_bytes=1000, count=lambda reason: pytest.fail(reason))
    assert [(frame.name, frame.started_at, frame.latency_ms) for frame in frames] == [
        ("tool0", "2023-11-14T22:13:20.007Z", 1.5),
        ("tool1", "2023-11-14T22:13:20.250Z", 1.5),
    ]
