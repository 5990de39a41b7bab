"""OpenTelemetry: whole runs of pytest at a real OTLP/HTTP receiver."""

import signal
import sys
from collections import Counter
from typing import Any

import pytest
from support.collector import Collector, Conduct, ReceivedSpan
from support.project import Project
from support.tools import require_tool

from pytest_tfgrpo.core.trace_ids import span_id, trace_id
from pytest_tfgrpo.telemetry.sinks import otlp_sender

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
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    names = (project.root / "modules").read_text().splitlines()
    assert not [n for n in names if n.startswith(("opentelemetry", "pytest_tfgrpo.telemetry.sinks"))]
    assert "pytest_tfgrpo.engine.engine" in names


def outcome(project: Project) -> tuple[Any, list[str]]:
    """Return the report without what differs between equal runs, and its warnings."""
    report = project.report()
    rows = [[row[k] for k in ("epoch", "mode", "rollouts", "errors", "gt_score")] for row in report["epochs"]]
    lessons = [lesson["text"] for lesson in report["library"]["lessons"]]
    return (rows, report["gate"]["outcome"], lessons), report["warnings"]


FAULTS = {
    "refused": None,
    "slow": Conduct(delay_s=1000),
    "hanging": Conduct(silent=True),
    "500": Conduct(status=500),
    "garbage": Conduct(raw=b"\x00garbage\r\n\r\n"),
    "a web page": Conduct(body=b"<html>hello</html>", content_type="text/html"),
    "rejecting": Conduct(rejected=10_000),
}
REASONS = {
    "refused": "connection refused",
    "slow": "not sent 2 s after the end of the run",
    "hanging": "not sent 2 s after the end of the run",
    "500": "HTTP 500",
    "garbage": "the answer is not HTTP (BadStatusLine)",
    "a web page": "the answer is text/html: not an OTLP receiver",
    "rejecting": "rejected by the collector",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_collector_that_fails_loses_spans_and_nothing_else(
    project: Project,
    collector: Collector,
    fault: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if REASONS[fault].startswith("not sent"):
        monkeypatch.setattr(otlp_sender, "FLUSH_S", 2.0)
    project.scenarios(train=3, sweep=2)
    project.ini(actor="python:agent:learner", group_size=3)
    without = project.learn()
    expected, others = outcome(project)
    if (conduct := FAULTS[fault]) is None:
        collector.__exit__()
    else:
        collector.conduct = conduct
    project.ini(actor="python:agent:learner", group_size=3, otel="true")
    result = project.learn()
    assert result.ret == without.ret == 0
    found, warnings = outcome(project)
    assert found == expected
    assert [w for w in warnings if w not in others] == [f"telemetry: 75 spans lost: {REASONS[fault]}"]
    result.stdout.fnmatch_lines([f"*telemetry: 75 spans lost: {REASONS[fault]}*"])
    assert not [line for line in result.outlines + result.errlines if "Traceback" in line or "urllib" in line]


def test_a_collector_on_this_machine_loses_nothing_of_a_large_run(
    project: Project, collector: Collector
) -> None:
    project.agent("async def solve(context):\n    return '3'\n")
    project.ini(actor="python:agent2:solve", otel="true", eval_rollouts=20).scenarios(train=0, sweep=100)
    result = project.run("-q")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*telemetry*")
    assert len(collector.named("invoke_agent")) == 2000


@pytest.mark.parametrize(
    ("name", "value", "sampled"),
    [
        ("OTEL_TRACES_SAMPLER", "always_off", "00"),
        ("OTEL_SDK_DISABLED", "true", ""),
        ("OTEL_TRACES_EXPORTER", "none", ""),
        ("OTEL_TRACES_SAMPLER", "always_on", "01"),
    ],
)
def test_a_sampler_keeps_or_drops_whole_runs(
    project: Project,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    sampled: str,
) -> None:
    monkeypatch.setenv(name, value)
    agent = f"#!{sys.executable}\nimport os\nprint(os.environ.get('TRACEPARENT', 'none'))\n"
    project.agent(agent)
    (project.root / "agent2.py").chmod(0o755)
    project.ini(actor="command:./agent2.py", otel="true", out="out").scenarios(train=0, sweep=1, min_score=0)
    project.run()
    (rollout,) = project.events("rollout")
    own, trace_of_run = span_id("rollout", rollout["rollout_id"]).hex(), trace_id(rollout["run_id"]).hex()
    assert rollout["answer"].strip() == (f"00-{trace_of_run}-{own}-{sampled}" if sampled else "none")
    assert bool(collector.spans) is (sampled == "01")


def test_an_agent_in_a_sandbox_knows_its_parent_too(project: Project, collector: Collector) -> None:
    require_tool("bwrap")
    project.agent("#!/bin/sh\necho $TRACEPARENT\n")
    (project.root / "agent2.py").chmod(0o755)
    project.ini(actor="command:./agent2.py", sandbox="bwrap", otel="true", out="out")
    project.scenarios(train=0, sweep=1, min_score=0)
    project.run()
    (rollout,), (span,) = project.events("rollout"), collector.named("invoke_agent")
    assert rollout["answer"].strip() == f"00-{span.trace_id}-{span.span_id}-01"


def test_an_interrupted_run_goes_on_in_the_same_trace(project: Project, collector: Collector) -> None:
    project.ini(
        actor="python:agent:slow", otel="true", concurrency=2, group_size=3, baseline_sweep="early"
    ).scenarios(train=6, sweep=4)
    process = project.start()
    project.wait_for_rollouts(process, 20)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    first = collector.named("invoke_agent")
    assert 12 <= len(first) < 60
    process = project.start("--tfgrpo-resume")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    rollouts = collector.named("invoke_agent")
    done = [span for span in rollouts if span["tfgrpo.status"] == "ok"]
    assert Counter(span["gen_ai.conversation.id"] for span in done) == Counter(
        rollout["rollout_id"] for rollout in project.events("rollout")
    )
    assert len({span.trace_id for span in collector.spans}) == 1
    ids = {span.span_id for span in collector.spans}
    assert all(span.parent_id in ids for span in collector.spans if span.name != "tfgrpo.run")
    groups = Counter(span.span_id for span in collector.named("tfgrpo.group"))
    assert len(groups) == 4 + 6 * 2 + 4
    assert set(groups.values()) == {1}
    runs = collector.named("tfgrpo.run")
    assert sorted(span["tfgrpo.status"] for span in runs) == ["cancelled", "complete"]
    assert len({(span.span_id, span.start_ns) for span in runs}) == 1
