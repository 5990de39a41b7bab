"""OpenTelemetry: whole runs of pytest at a real OTLP/HTTP receiver."""

import json
import logging
import signal
import sys
from collections import Counter
from fnmatch import fnmatch
from typing import Any

import pytest
from opentelemetry import trace
from support.collector import Collector, Conduct, ReceivedSpan
from support.fake_model import Body, Serve
from support.preparing import refusal
from support.project import Project
from support.teachers import operation, says
from support.tools import require_tool

import pytest_tfgrpo
from pytest_tfgrpo.core.trace_ids import span_id, trace_id
from pytest_tfgrpo.sinks import otlp_sender

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
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    names = (project.root / "modules").read_text().splitlines()
    assert not [n for n in names if n.startswith(("opentelemetry", "pytest_tfgrpo.sinks"))]
    assert "pytest_tfgrpo.harness.engine.engine" in names


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
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


SECRET = "sk-proj-4fGh8Jk2Lm6Np0Qr3St7"
TELLING_AGENT = f"""
def solve(context):
    frames = [
        {{"kind": "model", "name": "m-1", "input": "ASKED", "output": "SAID", "tokens": 9, "cost_usd": 0.25,
         "usage": {{"prompt": 7, "completion": 2, "reasoning": 1, "cached": 3}}, "finish": "stop"}},
        {{"kind": "tool", "name": "look", "input": {{"path": "ARGUMENT", "api_key": "hunter2hunter2"}},
         "output": "FOUND {SECRET}", "cost_usd": 0.5, "latency_ms": 4.0}},
        {{"kind": "tool", "name": "look", "error": "BROKEN", "cost_usd": 0.125}},
    ]
    return {{"answer": "ANSWERED {SECRET}", "frames": frames}}
"""
TEXTS = ("How many words", "ASKED", "SAID", "ARGUMENT", "hunter2", "FOUND", "BROKEN", "ANSWERED", SECRET)


def telling(project: Project, **settings: object) -> None:
    project.agent(TELLING_AGENT)
    project.ini(actor="python:agent2:solve", otel="true", **settings)
    project.scenarios(train=0, sweep=1, min_score=0)
    assert project.run().ret == 0


def test_calls_have_the_attributes_of_the_conventions(project: Project, collector: Collector) -> None:
    telling(project)
    (rollout,) = collector.named("invoke_agent")
    chat, tool, broken = sorted(
        (s for s in collector.spans if s.parent_id == rollout.span_id), key=lambda s: (s.failed, s.name)
    )
    shared = {
        "tfgrpo_epoch": 1,
        "group_size": 1,
        "tfgrpo.mode": "eval",
        "tfgrpo.scenario_id": "suite-eval0",
        "gen_ai.conversation.id": rollout["gen_ai.conversation.id"],
    }
    assert (chat.name, chat.kind) == ("chat m-1", 3)
    assert chat.attributes == shared | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "python",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "tfgrpo.tokens": 9,
        "tfgrpo.cost_usd": 0.25,
        "latency_ms": 0.0,
    }
    assert (tool.name, tool.kind) == ("execute_tool look", 1)
    assert tool.attributes == shared | {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "tool_cost_usd": 0.5,
        "latency_ms": 4.0,
    }
    assert tool.end_ns - tool.start_ns == 4_000_000
    assert broken["error.type"] == "_OTHER"
    assert rollout["tool_cost_usd"] == 0.625
    assert rollout["tfgrpo.cost_usd"] == 0.875
    group, epoch, run = (collector.named(f"tfgrpo.{name}")[0] for name in ("group", "epoch", "run"))
    assert [span["tool_cost_usd"] for span in (group, epoch, run)] == [0.625] * 3


def test_content_is_sent_only_where_it_is_switched_on(project: Project, collector: Collector) -> None:
    telling(project)
    sent = b"".join(collector.bodies)
    assert [text for text in TEXTS if text.encode() in sent] == []


def test_content_is_redacted(project: Project, collector: Collector) -> None:
    telling(project, otel_content="true")
    sent = b"".join(collector.bodies)
    assert [text for text in TEXTS if text.encode() in sent] == [
        t for t in TEXTS if t not in (SECRET, "hunter2")
    ]
    (rollout,), (chat,) = collector.named("invoke_agent"), collector.named("chat")
    (asked,) = json.loads(rollout["gen_ai.input.messages"])
    assert asked["role"] == "user"
    assert "How many words" in asked["parts"][0]["content"]
    assert json.loads(rollout["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "ANSWERED [redacted:api_key]"}],
            "finish_reason": "stop",
        }
    ]
    assert rollout.scores()["gt_score"]["explanation"].startswith("exact: ")
    assert json.loads(chat["gen_ai.input.messages"])[0]["parts"][0]["content"] == "ASKED"
    tool, broken = sorted(collector.named("execute_tool"), key=lambda s: s.failed)
    arguments = json.loads(tool["gen_ai.tool.call.arguments"])
    assert arguments == {"path": "ARGUMENT", "api_key": "[redacted:named]"}
    assert tool["gen_ai.tool.call.result"] == "FOUND [redacted:api_key]"
    assert broken.message == "BROKEN"


@pytest.mark.parametrize(("agent", "code"), [("crash", "crash"), ("provider", "provider"), ("right", None)])
def test_a_rollout_that_failed_says_why(
    project: Project, collector: Collector, agent: str, code: str | None
) -> None:
    project.ini(actor=f"python:agent:{agent}", otel="true").scenarios(train=0, sweep=1)
    project.run()
    (rollout,) = collector.named("invoke_agent")
    assert rollout.failed is (code is not None)
    assert rollout.attributes.get("error.type") == code
    if agent == "provider":
        assert rollout.scores()["gt_score"] == {"error.type": "provider"} | {}
    elif agent == "crash":
        assert rollout.scores()["gt_score"] == {"score.value": 0.0, "score.label": "fail"}


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
    project: Project, collector: Collector, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
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


def test_it_leaves_the_agents_tracer_provider_and_logging_alone(
    project: Project, collector: Collector
) -> None:
    provider, handlers, level = trace.get_tracer_provider(), logging.root.handlers[:], logging.root.level
    project.ini(actor="python:agent:right", otel="true").scenarios(train=0)
    project.run()
    assert trace.get_tracer_provider() is provider
    assert (logging.root.handlers, logging.root.level) == (handlers, level)


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


def test_resource_scope_and_headers_are_those_of_the_variables(
    project: Project, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-agent")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=ci")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    project.ini(actor="python:agent:right", otel="true").scenarios(train=0, sweep=5)
    assert project.run().ret == 0
    resource = collector.spans[0].resource
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("my-agent", "ci")
    assert {headers["api-key"] for headers in collector.headers} == {"k"}
    assert {headers["content-encoding"] for headers in collector.headers} == {"gzip"}
    assert len(collector.bodies) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_TRACES_EXPORTER", "console"),
    ],
)
def test_a_variable_that_cannot_be_is_an_error_that_names_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    project.ini(actor="python:agent:right", otel="true").scenarios()
    assert fnmatch(refusal(project, "--tfgrpo"), f"*{name}*{value}*")


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_variable_that_cannot_be_is_a_usage_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    name, value = "OTEL_BSP_MAX_QUEUE_SIZE", "many"
    monkeypatch.setenv(name, value)
    project.plugins(*(["xdist"] if workers else []))
    project.ini(actor="python:agent:right", otel="true").scenarios()
    result = project.learn(*workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{name}*{value}*"])
    assert project.calls == []


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


def test_teacher_and_judge_are_model_calls_of_their_epoch_and_group(
    project: Project, collector: Collector, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")

    def answer(body: Body, attempt: int) -> str:
        if body["model"] == "judge":
            keys = body["response_format"]["json_schema"]["schema"]["properties"]
            return json.dumps({key: {"why": "it is", "met": True} for key in keys})
        return says(operation(lesson="For letters: count each of the words, one by one."))

    serve(answer)
    project.ini(
        actor="python:agent:half", otel="true", group_size=4, epochs=1, eval_mode="separate", gate_alarm=1,
        optimizer="llm", teacher="openai:big", judge="openai:judge", judge_votes=1,
    ).scenarios(train=4, sweep=2, rubric=["The answer is short."])  # fmt: skip
    assert project.learn().ret == 0
    names = {span.span_id: span for span in collector.spans}
    judged = [span for span in collector.named("chat judge") if "tfgrpo.scenario_id" in span.attributes]
    taught = [span for span in collector.named("chat") if span not in judged]
    calls = project.events("call")
    assert len(judged) == (4 + 2 * 2) * 4
    assert len(judged) + len(taught) == len(calls)
    assert taught
    for span in judged:
        assert names[span.parent_id].name == "tfgrpo.group"
        assert names[span.parent_id]["tfgrpo.scenario_id"] == span["tfgrpo.scenario_id"]
    for span in taught:
        assert names[span.parent_id].name == "tfgrpo.epoch"
    for span in (*judged, *taught):
        assert span["gen_ai.provider.name"] == "openai"
        assert span["gen_ai.usage.input_tokens"] > 0
        parent = names[span.parent_id]
        assert parent.start_ns <= span.start_ns <= parent.end_ns
    scored = collector.named("invoke_agent")[0].scores()
    assert scored["judge"]["score.value"] == 1.0


def test_the_model_that_answered_stands_beside_the_one_that_was_asked(
    project: Project, collector: Collector, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    serve(lambda body, attempt: "3")
    project.ini(actor="openai:small", otel="true", allow_paid="true").scenarios(train=0, sweep=1)
    for arguments in (("--tfgrpo-record=r.jsonl",), ("--tfgrpo-actor=replay:r.jsonl",)):
        assert project.run("--tfgrpo-out=out", *arguments).ret == 0
    asked, again = collector.named("chat")
    for span in (asked, again):
        models = [span[f"gen_ai.{which}.model"] for which in ("request", "response")]
        assert models == ["small", "fake-model-1"]


def test_a_run_from_python_is_traced_too(project: Project, collector: Collector) -> None:
    project.scenarios(train=0, sweep=2)
    pytest_tfgrpo.run(project.root, actor="python:agent:right", learning=False, otel=True)
    assert len(collector.named("invoke_agent")) == 2
    (run,) = collector.named("tfgrpo.run")
    assert run["tfgrpo.status"] == "complete"


def test_a_run_from_python_reports_what_was_lost(
    project: Project, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_sender, "FLUSH_S", 0.2)
    collector.conduct = Conduct(silent=True)
    project.scenarios(train=0, sweep=2)
    result = pytest_tfgrpo.run(project.root, actor="python:agent:right", learning=False, otel=True)
    assert result.passed
    assert result.run.warnings == ("telemetry: 6 spans lost: not sent 0.2 s after the end of the run",)
