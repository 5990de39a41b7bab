"""Programs that print no frames, and send spans to the receiver."""

import asyncio
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.otlp_spans import agent, line, span
from support.span_recorder import ANSWER, QUESTION

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

MakeCall = Callable[..., ActorCall]
RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded" / "rollouts"
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
