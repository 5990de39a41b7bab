"""The spans of our own runs, as a Collector writes them to a file: they read as what was sent."""

import json
from base64 import b64decode
from io import BytesIO
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pytest_tfgrpo.core.records import Frame, Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.telemetry.sinks.genai_spans import SpanWriter
from pytest_tfgrpo.telemetry.sinks.otlp import envelope, request
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent
from pytest_tfgrpo.telemetry.traces.dialects.genai import read_genai
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines

RUN = "20260101T000000-12345678"


def with_hex_ids(found: Any) -> Any:
    if isinstance(found, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {k: b64decode(v).hex() if k in ids else with_hex_ids(v) for k, v in found.items()}
    return [with_hex_ids(one) for one in found] if isinstance(found, list) else found


def test_a_rollout_reads_as_the_run_it_was() -> None:
    frames = (
        Frame(kind="model", name="m", input="When?", output="", finish="tool_calls", latency_ms=5.0),
        Frame(kind="tool", name="clock", input={"zone": "x"}, error="no such zone", latency_ms=5.0),
        Frame(kind="tool", name="clock", input={"zone": "utc"}, output="noon", latency_ms=5.0),
        Frame(kind="model", name="m", input="When?", output="At noon.", finish="stop", latency_ms=5.0),
    )
    rollout = Rollout(
        rollout_id=f"{RUN}.e1.a.r0", group_id=f"{RUN}.e1.a", run_id=RUN, scenario_id="a", epoch=1,
        mode="train", index=0, seed=1, temperature=0.7, status="ok", frames=frames, latency_ms=500.0,
        started_at="2026-01-01T00:00:01.000Z", answer="At noon.",
    )  # fmt: skip
    score = Score(rollout_id=rollout.rollout_id, gt_score=0.5, reward=1.0, relative_rank=-0.5, advantage=0.0)
    group = Group(
        group_id=rollout.group_id, epoch=1, mode="train", scenario_id="a", domain="text",
        rollouts=(rollout,), scores=(score,), informative=False,
    )  # fmt: skip
    content = SpanContent(on=True, text_max=None)
    content.keep(rollout.rollout_id, Prompt(system="You know the time.", user="When?"))
    writer = SpanWriter(RUN, agent="python:a:b", provider="python", content=content)
    sent = request(envelope({}, "s", "1"), writer.spans(group, 1_767_225_611_000_000_000))
    written = with_hex_ids(MessageToDict(ExportTraceServiceRequest.FromString(sent)))

    forest = SpanForest(read_genai)
    forest.take(read_otlp_lines(BytesIO(json.dumps(written).encode()), "spans.jsonl"))
    (run,) = forest.runs()
    assert forest.refused == []
    assert (run.agent.name, run.agent.conversation) == ("python:a:b", rollout.rollout_id)
    assert (run.prompt, run.reply) == ("When?", "At noon.")
    assert [(step.kind, step.name, step.error, step.answered) for step in run.steps] == [
        ("turn", "m", None, ""),
        ("tool", "clock", "no such zone", ""),
        ("tool", "clock", None, "noon"),
        ("turn", "m", None, "At noon."),
    ]
    assert [(outcome.name, outcome.value) for outcome in run.outcomes] == [
        ("gt_score", 0.5),
        ("relative_rank", -0.5),
    ]
