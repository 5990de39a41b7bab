"""OpenTelemetry: whole runs of pytest at a real OTLP/HTTP receiver."""

import sys
from collections import Counter

import pytest
from support.collector import Collector, ReceivedSpan
from support.project import Project

from pytest_tfgrpo.core.trace_ids import span_id, trace_id

pytestmark = pytest.mark.service

TRACING_AGENT = """
import asyncio, os, sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
TRACER = PROVIDER.get_tracer("agent")


def plain(context):
    with TRACER.start_as_current_span("own work"):
        return "3"


async def coroutine(context):
    with TRACER.start_as_current_span("own work"):
        await asyncio.sleep(0.01)
    return "3"


if __name__ == "__main__":
    parent = TraceContextTextMapPropagator().extract({"traceparent": os.environ["TRACEPARENT"]})
    with TRACER.start_as_current_span("own work", context=parent):
        print("3")
"""


def shape(spans: list[ReceivedSpan]) -> Counter[tuple[str, str]]:
    """Return how often each name occurs under each name."""
    names = {span.span_id: span.name for span in spans}
    return Counter((names.get(span.parent_id, ""), span.name) for span in spans)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_run_is_a_tree_of_epochs_groups_rollouts_and_calls(
    project: Project, collector: Collector, workers: tuple[str, ...]
) -> None:
    project.plugins(*(["xdist"] if workers else []))
    project.ini(actor="python:agent:learner", otel="true", group_size=3, epochs=2).scenarios(train=3, sweep=2)
    result = project.learn(*workers)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*telemetry*")
    agent = "invoke_agent python:agent:learner"
    spans = collector.spans
    found = shape(spans)
    tools = sum(found.pop((agent, f"execute_tool {tool}"), 0) for tool in ("count_words", "guess"))
    assert tools == (3 + 2 + 2) * 3
    assert found == {
        ("", "tfgrpo.run"): 1,
        ("tfgrpo.run", "tfgrpo.epoch"): 3,
        ("tfgrpo.epoch", "tfgrpo.group"): 3 + 2 + 2,
        ("tfgrpo.group", agent): (3 + 2 + 2) * 3,
    }
    run_id = project.runs()[-1].name
    assert {span.trace_id for span in spans} == {trace_id(run_id).hex()}
    assert len({span.span_id for span in spans}) == len(spans)
    assert all(span.sampled and span.scope == "pytest-tfgrpo" for span in spans)
    assert {span.resource["service.name"] for span in spans} == {"pytest-tfgrpo"}
    by_id = {span.span_id: span for span in spans}
    for span in spans:
        assert span.start_ns <= span.end_ns
        assert "latency_ms" in span.attributes
        assert ("tfgrpo_epoch" in span.attributes) is bool(span.parent_id)
        assert span["group_size"] == 3
        if span.parent_id:
            assert by_id[span.parent_id].start_ns <= span.start_ns <= by_id[span.parent_id].end_ns
    rollouts = {rollout["rollout_id"]: rollout for rollout in project.events("rollout")}
    sent = {span["gen_ai.conversation.id"]: span for span in collector.named("invoke_agent")}
    assert sent.keys() == rollouts.keys()
    for rollout_id, span in sent.items():
        assert span.span_id == span_id("rollout", rollout_id).hex()
        assert span["latency_ms"] == rollouts[rollout_id]["latency_ms"]
        assert span["tfgrpo.tokens"] == rollouts[rollout_id]["tokens"]
        assert span["tfgrpo_epoch"] == rollouts[rollout_id]["epoch"]
        assert span["gen_ai.operation.name"] == "invoke_agent"
        right = rollouts[rollout_id]["answer"] == "3"
        assert span.scores()["gt_score"] == {
            "score.value": float(right),
            "score.label": "pass" if right else "fail",
        }
        assert 0 <= span.scores()["relative_rank"]["score.value"] <= 1


@pytest.mark.parametrize("agent", ["python:agent2:plain", "python:agent2:coroutine", "command"])
def test_spans_of_an_agents_own_are_children_of_its_rollouts_span(
    project: Project, collector: Collector, agent: str
) -> None:
    project.agent(f"#!{sys.executable}\n{TRACING_AGENT}")
    (project.root / "agent2.py").chmod(0o755)
    spec = "command:./agent2.py" if agent == "command" else agent
    project.ini(actor=spec, otel="true", eval_rollouts=2).scenarios(train=0, sweep=1)
    assert project.run().ret == 0
    rollouts, own = collector.named("invoke_agent"), collector.named("own work")
    assert len(rollouts) == 2
    assert sorted(span.parent_id for span in own) == sorted(span.span_id for span in rollouts)
    assert {span.trace_id for span in own} == {span.trace_id for span in rollouts}


def test_telemetry_that_is_off_is_not_even_imported(project: Project) -> None:
    project.conftest(
        "import sys\nfrom pathlib import Path\n"
        "def pytest_unconfigure():\n    Path('modules').write_text('\\n'.join(sys.modules))\n"
    )
    project.scenarios()
    process = project.start()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    names = (project.root / "modules").read_text().splitlines()
    assert not [n for n in names if n.startswith(("opentelemetry", "pytest_tfgrpo.sinks"))]
    assert "pytest_tfgrpo.harness.engine.engine" in names


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_without_the_extra_it_is_a_usage_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    project.plugins(*(["xdist"] if workers else []))
    project.ini(actor="python:agent:right", otel="true").scenarios()
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    result = project.learn(*workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*otel needs OpenTelemetry; install it with: pip install 'pytest-tfgrpo?otel?'"]
    )
    assert project.calls == []
