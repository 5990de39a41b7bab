"""OpenTelemetry: whole runs of pytest at a real OTLP/HTTP receiver."""

import json
import logging
import sys
from fnmatch import fnmatch

import pytest
from opentelemetry import trace
from support.collector import Collector, Conduct
from support.fake_model import Body, Serve
from support.preparing import refusal
from support.project import Project
from support.teachers import operation, says

import pytest_tfgrpo
from pytest_tfgrpo.telemetry.sinks import otlp_sender


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


def test_it_leaves_the_agents_tracer_provider_and_logging_alone(
    project: Project, collector: Collector
) -> None:
    provider, handlers, level = trace.get_tracer_provider(), logging.root.handlers[:], logging.root.level
    project.ini(actor="python:agent:right", otel="true").scenarios(train=0)
    project.run()
    assert trace.get_tracer_provider() is provider
    assert (logging.root.handlers, logging.root.level) == (handlers, level)


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
