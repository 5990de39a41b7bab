"""Whole runs whose model calls tools of real MCP servers, or mocks of them."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import fake_model
from support.fake_model import Body, Reply, Serve
from support.plugin.models import KEY, settings
from support.project import Project
from support.tools import missing_tool, require_module


@pytest.fixture
def serve(project: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> Serve:
    """Start a model server that the project's actor asks; retries are off."""
    require_module("mcp")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("models.yaml", "endpoints: {default: {retries: 0}}\n")
    return partial(serve, keys=[KEY])


def server(name: str) -> str:
    """Return the path of a server's program, which is beside this Python or on PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name) or missing_tool(name)


def caller(name: str, arguments: dict[str, object]) -> object:
    """Return a model that calls a tool, and answers with the last line of what it gets."""

    def answer(request: Body, _: int) -> Reply | str:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return str(last["content"])
        return fake_model.calls((name, arguments))

    return answer


def recorded(project: Project, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.root / name).read_text().splitlines()]


def tools_of(rollouts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    frames = [frame for rollout in rollouts for frame in rollout["frames"]]
    return [(frame["name"], frame["output"]) for frame in frames if frame["kind"] == "tool"]


CONVERT = {"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "Europe/London"}
SCENARIO = """\
id: london
split: eval
prompt: What time is it in London when it is 16:30 in Tokyo?
tools: [convert_time]
checks: [{kind: regex, value: '', pattern: "07:30|08:30"}]
""".replace("value: '', ", "")


def test_a_recorded_call_of_a_real_server_is_mocked_in_the_next_run(project: Project, serve: Serve) -> None:
    model = serve(caller("convert_time", CONVERT))
    project.write("london.scenario.yaml", SCENARIO)
    spec = f"mcp:{server('mcp-server-time')}"
    settings(project, tools=spec, eval_rollouts=2)
    result = project.run("--tfgrpo-record=session.jsonl", "--tfgrpo-allow-paid=true")
    result.assert_outcomes(passed=1)
    assert model.refusals == []
    offered = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert offered == ["convert_time"]
    header, *first = recorded(project, "session.jsonl")
    (stamped,) = header["actors"][0]["identity"]["tools"]["mcp"]
    assert stamped["server"] == spec
    assert stamped["tools"].keys() == {"convert_time", "get_current_time"}

    mocked = SCENARIO + "mocks: {'*': {recorded: session.jsonl}}\n"
    project.write("london.scenario.yaml", mocked)
    result = project.run("--tfgrpo-record=again.jsonl", "--tfgrpo-allow-paid=true")
    result.assert_outcomes(passed=1)
    _, *again = recorded(project, "again.jsonl")
    assert tools_of(again) == tools_of(first)
    assert len(tools_of(again)) == 2


def test_a_server_works_in_the_workspace_of_each_rollout(project: Project, serve: Serve) -> None:
    def answer(request: Body, _: int) -> Reply | str:
        told = [str(message["content"]) for message in request["messages"] if message["role"] == "tool"]
        steps = [("git_add", {"repo_path": ".", "files": ["note.txt"]}), ("git_status", {"repo_path": "."})]
        return told[-1] if len(told) == len(steps) else fake_model.calls(steps[len(told)])

    serve(answer)
    project.write("world.py", WORLD)
    scenario = {
        "id": "stage",
        "split": "eval",
        "prompt": "Stage the note.",
        "setup": {"python": "world:repository"},
        "checks": [
            {"kind": "contains", "value": "new file:   note.txt"},
            {"kind": "file", "path": "note.txt", "contains": "hello"},
        ],
    }
    project.write("stage.scenario.json", json.dumps(scenario))
    settings(project, tools=f"mcp:{server('mcp-server-git')}", eval_rollouts=2)
    project.run("--tfgrpo-allow-paid=true").assert_outcomes(passed=1)


WORLD = """
import subprocess

def repository(context):
    subprocess.run(["git", "init", "-q", context.workspace], check=True)
    (context.workspace / "note.txt").write_text("hello")
"""


def test_a_call_that_no_mock_covers_is_an_error_and_no_score(project: Project, serve: Serve) -> None:
    serve(caller("convert_time", CONVERT))
    project.write(
        "london.scenario.yaml", SCENARIO + "mocks: {convert_time: [{when: {time: '1'}, returns: 2}]}\n"
    )
    settings(project, tools=f"mcp-shared:{server('mcp-server-time')}", eval_rollouts=2)
    result = project.run("--tfgrpo-allow-paid=true")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*every rollout is an error: mock: no mock of scenario 'london' covers the call convert_time({*"]
    )


@pytest.mark.parametrize(
    ("actor", "reason"),
    [
        ("openai:m", "*scenario 'london' (london.scenario.yaml:1): there is no tool 'convert' to mock;*"),
        (
            "offline",
            "*'offline' calls its own tools, and scenario 'london' (london.scenario.yaml:1) mocks some*",
        ),
    ],
)
def test_mocks_that_nobody_could_use_are_a_usage_error(
    project: Project, serve: Serve, actor: str, reason: str
) -> None:
    model = serve(caller("convert_time", CONVERT))
    project.write("london.scenario.yaml", SCENARIO + "mocks: {convert: {returns: 1}}\n")
    settings(project, actor=actor, tools=f"mcp:{server('mcp-server-time')}", eval_rollouts=2)
    result = project.run("--tfgrpo-allow-paid=true")
    assert result.ret == 4
    result.stderr.fnmatch_lines([reason])
    assert model.requests == []
