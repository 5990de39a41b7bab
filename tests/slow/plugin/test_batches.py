"""Runs whose calls are made in batches, from the user's command to the report."""

import json
import os
import re
import signal
import time
from typing import Any

import pytest
from support import ROOT, fake_model
from support.fake_batches import FakeBatches
from support.fake_model import Body, Reply, Serve
from support.project import Project
from support.teachers import asked, operation, says

PRICES = "prices: {m: {input: 100, output: 1000}, big: {input: 100, output: 1000}}\n"
MODELS = "endpoints: {default: {retries: 0, batch: {gather_s: 0.1, poll_s: 0.01}}}\n" + PRICES
ONE_EACH = MODELS.replace("0.1", "1")
"""For tests that count batches: no pause of a busy machine is so long."""
LESSON = "For letters: count each of the words, one by one."
SETTINGS = {"models": "models.yaml", "epochs": 2, "baseline_sweep": "off", "eval_mode": "separate"}


def answer(body: Body, attempt: int) -> str:
    """Answer as actor, as teacher or as judge."""
    if body["model"] == "big":
        if "Several tasks of one domain" in asked(body):
            return says(operation(lesson=LESSON, sources=["P1", "P2"]))
        known = f"| {LESSON}" in asked(body)
        return says(operation("KEEP", "", ids=["L1"]) if known else operation(lesson=LESSON))
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 else "4"


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    project.write("models.yaml", MODELS)
    return project.ini(actor="openai:m", **SETTINGS).scenarios(train=50, sweep=20)


def sizes(batches: FakeBatches) -> list[int]:
    return [len(batch["keys"]) for batch in batches.batches.values()]


def comparable(project: Project, *, price: float = 1.0) -> Any:
    """Return the report without times and ids, its costs times `price`."""
    folder = project.runs()[-1]
    report = json.loads((folder / "report.json").read_text().replace(folder.name, "RUN"))

    def clean(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {
                name: clean(part, f"{key}/{name}")
                for name, part in value.items()
                if not re.search("latency|seconds|_at$|_s$|^id$|parents|evaluations|calls", name)
            }
        if isinstance(value, list):
            return [clean(part, key) for part in value]
        if isinstance(value, float) and "usd" in key:
            return f"{price * value:.9g}"
        return "ID" if isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value) else value

    return clean(report)


def test_a_phase_is_one_batch_and_the_report_differs_in_its_costs_alone(suite: Project, serve: Serve) -> None:
    batches = FakeBatches()
    free = fake_model.text("ok", usage=fake_model.usage(0, 0))
    server = serve(answer, batches=batches, hello=lambda *_: free)
    suite.write("models.yaml", ONE_EACH)
    suite.ini(actor="openai:m", **SETTINGS, optimizer="llm", teacher="openai:big")
    assert suite.learn().ret == 0
    assert server.refusals == []
    assert server.hellos == [], "a batch for a word would take hours"
    phases = [size for size in sizes(batches) if size >= 40]
    assert phases == [100, 100, 40], "the settings allow 64 rollouts at once"
    assert set(batches.asked.values()) == {1}
    found = comparable(suite)
    suite.write("models.yaml", PRICES)
    assert suite.learn().ret == 0
    assert found == comparable(suite, price=0.5)


TOOLS = '''
def lookup(key: str) -> str:
    """Look a word up."""
    return f"{key} means 3"
'''


def test_each_turn_of_an_agent_is_a_batch(suite: Project, serve: Serve) -> None:
    def turn(body: Body, attempt: int) -> Reply | str:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return str(last["content"]).rpartition(" ")[2]
        return fake_model.calls(("lookup", {"key": "three"}))

    batches = FakeBatches()
    server = serve(turn, batches=batches)
    suite.write("models.yaml", ONE_EACH).write("words.py", TOOLS).ini(
        actor="openai:m", **SETTINGS, tools="words"
    )
    assert suite.scenarios(train=0, sweep=10, tools=["lookup"]).learn().ret == 0
    assert sizes(batches) == [20, 20]
    assert server.refusals == []
    assert suite.report()["epochs"][-1]["gt_score"]["mean"] == 1.0, (
        "no limit ran while a batch was waited for"
    )


def test_a_server_without_batch_routes_ends_the_run_and_is_named(suite: Project, serve: Serve) -> None:
    server = serve(answer)
    result = suite.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert server.requests == []
    assert suite.manifest()["status"] == "incomplete"
    result.stdout.fnmatch_lines(["*the endpoint has no batch routes (GET /batches: HTTP 404*"])


class Killer(FakeBatches):
    """Kills a process when it makes a request of a kind, once that was carried out."""

    pid = 0

    def __init__(self, route: str) -> None:
        super().__init__()
        self._route = route

    def reply(self, start: str, *rest: Any) -> Reply:
        reply = super().reply(start, *rest)
        if self.pid and re.fullmatch(self._route, start.partition("?")[0]):
            os.kill(self.pid, signal.SIGKILL)
            self.pid = 0
        return reply


@pytest.mark.parametrize(
    "route",
    ["POST /v1/files", "POST /v1/batches", "GET /v1/batches/batch_1", "GET /v1/files/file-[0-9]+/content"],
)
def test_a_killed_run_collects_its_batches_when_it_is_resumed(
    suite: Project, serve: Serve, route: str
) -> None:
    batches = Killer(route)
    server = serve(answer, batches=batches)
    suite.scenarios(train=6, sweep=4)
    with suite.start() as process:
        batches.pid = process.pid
        process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    result = suite.learn("--tfgrpo-resume")
    assert result.ret == 0, str(result.stdout)
    assert sum(sizes(batches)) == 32
    assert len(server.requests) == 32
    assert set(batches.asked.values()) == {1}
    assert suite.report()["cost"]["unknown"] == 0


def test_a_run_killed_among_its_results_collects_the_others(
    suite: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = FakeBatches()
    server = serve(answer, batches=batches)
    suite.scenarios(train=6, sweep=4)
    monkeypatch.setenv("KILL", "after rollout:15")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"), prepend=os.pathsep)
    with suite.start("-p", "support.killer") as process:
        process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    monkeypatch.delenv("KILL")
    assert suite.learn("--tfgrpo-resume").ret == 0
    assert sum(sizes(batches)) == 32
    assert len(server.requests) == 32
    assert len(suite.events("rollout")) == 32


def test_ctrl_c_leaves_a_batch_to_the_server_and_says_so(suite: Project, serve: Serve) -> None:
    batches = FakeBatches(looks=10**9)
    server = serve(answer, batches=batches)
    suite.scenarios(train=6, sweep=4)
    with suite.start() as process:
        deadline = time.monotonic() + 100
        while not batches.seen["GET /batches/*"] and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=100)
    told = " ".join(output.split())
    assert re.search(r"batch batch_0 of \d+ calls goes on at the server, which bills it; a resumed run", told)
    assert batches.batches["batch_0"]["status"] == "in_progress"
    batches.end()
    assert suite.learn("--tfgrpo-resume").ret == 0
    assert sum(sizes(batches)) == 32
    assert len(server.requests) == 32


def test_with_workers_each_call_is_in_one_batch(suite: Project, serve: Serve) -> None:
    batches = FakeBatches()
    serve(answer, batches=batches)
    assert suite.plugins("xdist").scenarios(train=6, sweep=4).learn("-n2").ret == 0
    assert sum(sizes(batches)) == 32
    assert set(batches.asked.values()) == {1}


def test_the_votes_of_a_judge_are_made_in_batches(suite: Project, serve: Serve) -> None:
    batches = FakeBatches()

    def vote(body: Body, attempt: int) -> str:
        if "response_format" not in body:
            return answer(body, attempt)
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": body["seed"] % 2 == 0} for key in keys})

    serve(vote, batches=batches)
    suite.write("models.yaml", ONE_EACH)
    suite.ini(actor="openai:m", **SETTINGS, judge="openai:big", judge_votes=3)
    suite.scenarios(train=0, sweep=20, rubric=["The answer is short."])
    assert suite.learn().ret == 0
    assert sizes(batches) == [40, 120]
    assert suite.report()["cost"]["unknown"] == 0


def test_a_recording_of_batches_is_replayed_without_a_server(suite: Project, serve: Serve) -> None:
    serve(answer, batches=FakeBatches())
    settings = {**SETTINGS, "optimizer": "llm"}
    suite.ini(actor="openai:m", **settings, teacher="openai:big").scenarios(train=8, sweep=4)
    assert suite.learn("--tfgrpo-record=kept.jsonl").ret == 0
    first = comparable(suite)
    suite.ini(actor="replay:kept.jsonl", **settings, teacher="openai:big")
    assert suite.learn().ret == 0
    assert comparable(suite)["epochs"] == first["epochs"]
