"""Programs that print no frames, and send spans to the receiver."""

import asyncio
import http.client
import os
import socket
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import ROOT
from support.otlp_spans import agent, line, span
from support.span_recorder import ANSWER, QUESTION

from pytest_tfgrpo.harness.actors import program_spans
from pytest_tfgrpo.harness.actors.program_spans import ProgramSpans, wants_receiver
from pytest_tfgrpo.harness.actors.registry import open_actor
from pytest_tfgrpo.harness.actors.span_receiver import BODY_BYTES, ROLLOUT_BYTES, open_receiver
from pytest_tfgrpo.harness.engine.attempt import AttemptResult, attempt
from pytest_tfgrpo.harness.protocols import ActorCall
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.traces.span_counts import SpanCounts

MakeCall = Callable[..., ActorCall]
RECORDED = ROOT / "tests" / "traces" / "recorded" / "rollouts"
SEND = """
    import os, sys, urllib.request
    def send(body, path="/v1/traces", kind="application/json", **headers):
        url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + path
        request = urllib.request.Request(url, body, {"Content-Type": kind, **headers})
        return urllib.request.urlopen(request).status
"""


class Program:
    """Asks a program, and says what was not used of its spans."""

    def __init__(self, root: Path, make_call: MakeCall) -> None:
        self.root = root
        self.make_call = make_call
        self.counts = SpanCounts()

    def ask(self, source: str, *, times: int = 1, **changes: Any) -> list[AttemptResult]:
        (self.root / "agent.py").write_text(textwrap.dedent(SEND) + textwrap.dedent(source))
        actor = open_actor(f"command:{sys.executable} agent.py", root=self.root, settings={})

        async def ask() -> list[AttemptResult]:
            places = [Workspace(self.root / f"work{n}") for n in range(times)]
            calls = [self.make_call(span_counts=self.counts, workspace=place, **changes) for place in places]
            return await asyncio.gather(*(attempt(actor, call) for call in calls))

        return asyncio.run(ask())


@pytest.fixture
def program(tmp_path: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch) -> Program:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    return Program(tmp_path, make_call)


def told(result: AttemptResult) -> list[tuple[Any, ...]]:
    return [(frame.kind, frame.name, frame.input, frame.output, frame.error) for frame in result.frames]


def tool(
    number: int, name: str, trace: str | None = None, parent: int | None = None, **fields: Any
) -> dict[str, Any]:
    made = span(number, "execute_tool", parent=parent, attributes={"gen_ai.tool.name": name}, **fields)
    return made | ({} if trace is None else {"traceId": trace})


@pytest.mark.parametrize("name", ["langgraph", "openai-agents", "pydantic-ai"])
def test_each_framework_gives_the_same_frames(program: Program, name: str) -> None:
    source = f"""
        for one in open({str(RECORDED / name)!r} + ".jsonl", "rb"):
            assert send(one) == 200
        print({ANSWER!r})
    """
    (result,) = program.ask(source, answer_max_bytes=10_000)
    assert result.answer == ANSWER
    assert told(result) == [
        ("model", "toy-model", QUESTION, "", None),
        ("tool", "weather", {"city": "Atlantis"}, "no such city: Atlantis", None),
        ("model", "toy-model", QUESTION, "", None),
        ("tool", "weather", {"city": "Paris"}, "sunny", None),
        ("model", "toy-model", QUESTION, ANSWER, None),
    ]
    assert (result.extra, program.counts.warnings) == ({}, [])


def test_opentelemetrys_own_exporter_sends_protobuf_and_is_flushed_when_the_program_ends(
    program: Program,
) -> None:
    source = """
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": sys.stdin.readline()[:9]}
        with provider.get_tracer("toy").start_as_current_span("tool", attributes=given):
            print("3")
    """
    results = program.ask(source, times=3)
    assert [told(result) for result in results] == [[("tool", '{"schema"', None, "", None)]] * 3
    assert program.counts.warnings == []


def test_frames_that_the_program_prints_stand_alone(program: Program) -> None:
    source = f"""
        send({line(tool(1, "seen")).encode()!r})
        send(b"broken")
        print('{{"frame": {{"kind": "tool", "name": "told"}}}}')
        print('{{"answer": "3"}}')
    """
    (result,) = program.ask(source)
    assert [frame.name for frame in result.frames] == ["told"]
    assert (result.extra, program.counts.warnings) == ({}, [])


@pytest.mark.parametrize(
    ("ends", "status", "code"),
    [("sys.exit(3)", "failed", "crash"), ("import time; time.sleep(1000)", "failed", "timeout")],
)
def test_a_program_that_fails_has_the_calls_until_then(
    program: Program, ends: str, status: str, code: str
) -> None:
    sent = line(tool(1, "count", parent=9)).encode()  # the span around it never came
    (result,) = program.ask(f"send({sent!r})\n{ends}", timeout_s=4.0 if code == "timeout" else 100.0)
    assert result.failure is not None
    assert (result.status, result.failure.code) == (status, code)
    assert [frame.name for frame in result.frames] == ["count"]


def test_spans_that_come_twice_or_late_or_broken_are_counted(program: Program) -> None:
    twice = line(agent(1), tool(2, "count", parent=1)).encode()
    bad = line(tool(3, "x") | {"spanId": "zz"}).encode()
    source = f"""
        send({twice!r}), send({twice!r}), send({bad!r}), send(b"[[[")
        send(b"\\xff\\xff", kind="application/x-protobuf"), send(b"x", "/v1/metrics")
        for kind, path, headers in (("text/html", "/v1/traces", {{}}), ("application/json", "/v2", {{}}),
                                    ("application/json", "/v1/traces", {{"Content-Encoding": "gzip"}})):
            try:
                send(b"x", path, kind, **headers)
            except OSError as error:
                assert error.code in (404, 415), error
            else:
                raise AssertionError(path)
        print("3")
    """
    (result,) = program.ask(source)
    assert [frame.name for frame in result.frames] == ["count"]
    unused = {
        "media_type": 2,
        "unknown_path": 1,
        "duplicate": 2,
        "bad_id": 1,
        "not_json": 1,
        "not_protobuf": 1,
    }
    assert result.extra == {"unused_spans": unused}
    (warning,) = program.counts.warnings
    assert "2 duplicate (seen twice)" in warning


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
    monkeypatch.setattr("pytest_tfgrpo.harness.actors.span_receiver.ROLLOUT_BYTES", 4000)
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
    monkeypatch.setattr("pytest_tfgrpo.harness.sandbox.sandbox_settings.open_bwrap", lambda: "bwrap")
    settings = {"sandbox": "bwrap", "sandbox_network": network}
    actor: Any = open_actor("command:sh agent", root=tmp_path, settings=settings)
    call = make_call()
    found = actor._environment(call, call.workspace.path, ProgramSpans(call))
    assert ("OTEL_EXPORTER_OTLP_ENDPOINT" in found) == ("TRACEPARENT" in found) == given


def test_without_protobuf_json_is_asked_for_and_the_extra_is_named(
    raw: Callable[[], Raw], make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_tfgrpo.core.errors import SettingError
    from pytest_tfgrpo.traces import otlp

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
