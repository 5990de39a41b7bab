"""Runs against a model server: whole ones, faulty ones, killed ones, and ones short of money."""

from dataclasses import replace
from functools import partial

import pytest
from support import fake_model
from support.fake_model import Body, Reply, Serve
from support.plugin.models import ECHO, KEY, LOUD, PRICED, TOOLS, assert_no_key, echoed, settings, used
from support.project import Project

from pytest_tfgrpo.core.errors import AWAY


@pytest.fixture
def serve(project: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> Serve:
    """Start a model server that the project's actor asks; retries are off."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("models.yaml", "endpoints: {default: {retries: 0}}\n")
    settings(project)
    return partial(serve, keys=[KEY])


def one_call(project: Project) -> Project:
    """Make the project one with a single eval scenario, tried once."""
    settings(project, eval_rollouts=1)
    return project.scenarios(train=0, sweep=1, timeout_s=100)


def test_a_whole_run_asks_with_prompt_temperature_seed_and_key(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    result = project.scenarios(train=2, sweep=2).learn()
    assert result.ret == 0
    assert len(server.requests) == 2 * 2 + 2 * 2
    assert server.refusals == []
    assert {request["temperature"] for request in server.requests} == {0.7, 0.3}
    assert len({request["seed"] for request in server.requests}) == 8
    assert {header["authorization"] for header in server.headers} == {f"Bearer {KEY}"}
    report = project.report()
    assert [epoch["gt_score"]["mean"] for epoch in report["epochs"]] == [1.0, 1.0]
    assert all(epoch["tokens"]["sum"] > 0 and epoch["cost_usd"]["sum"] is None for epoch in report["epochs"])


def test_a_model_uses_the_tools_of_the_project(project: Project, serve: Serve) -> None:
    def answer(request: Body, _: int) -> Reply | str:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return str(last["content"]).rpartition(" ")[2]
        return fake_model.calls(("lookup", {"key": "three"}))

    server = serve(answer)
    project.write("words.py", TOOLS)
    settings(project, tools="words")
    assert project.scenarios(train=1, sweep=1, tools=["lookup"]).learn().ret == 0
    assert server.refusals == []
    for rollout in project.events("rollout"):
        assert [(f["kind"], f["name"]) for f in rollout["frames"]] == [
            ("model", "m"), ("tool", "lookup"), ("model", "m"),
        ]  # fmt: skip
    assert {row["tool"] for row in project.report()["epochs"][-1]["tools"]} == {"m", "lookup"}


def test_a_picture_reaches_the_server(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    (project.root / "look.png").write_bytes(b"\x89PNG\r\n\x1a\npixels")
    one_call(project).scenarios(train=0, sweep=1, attachments=["look.png"])
    assert project.learn().ret == 0
    text, picture = server.requests[0]["messages"][-1]["content"]
    assert text["type"] == "text"
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgpwaXhlbHM")


def test_a_tool_that_does_not_exist_is_a_usage_error_before_any_call(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    project.write("words.py", TOOLS)
    settings(project, tools="words")
    result = project.scenarios(train=0, sweep=1, tools=["lokup"]).learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*actor: scenario 'suite-eval0': there is no tool 'lokup'; *did you mean 'lookup'[?]"]
    )
    assert server.requests == []


def test_a_model_that_costs_money_needs_leave_to_run_without_the_flag(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    result = project.scenarios(train=0, sweep=1).run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*actor 'openai:m' costs money; set tfgrpo_allow_paid = true*"])
    assert server.requests == []
    assert project.run("--tfgrpo-allow-paid", "true").ret == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(echoed(fake_model.refused(401, ECHO)), "auth", id="401"),
        pytest.param(echoed(fake_model.refused(404, ECHO)), "not_found", id="404"),
        pytest.param(fake_model.rate_limited("600"), "rate_limit", id="429 with Retry-After"),
        pytest.param(echoed(fake_model.refused(500, ECHO)), "server", id="500"),
        pytest.param(fake_model.RESET, "connection", id="reset in mid-body"),
        pytest.param(fake_model.SILENT, "timeout", id="never answering"),
        pytest.param(echoed(Reply(body=b'{"KEY": "half')), "bad_response", id="invalid JSON"),
        pytest.param(echoed(Reply(body={"answer": ECHO})), "bad_response", id="wrong shape"),
    ],
)
def test_a_fault_of_a_server_that_is_away_ends_the_run_and_shows_no_key(
    project: Project, serve: Serve, reply: Reply, code: str
) -> None:
    """`tests/llm/test_faults.py` says which code each reply has."""
    assert code in AWAY
    server = serve(lambda request, _: reply)
    project.write("words.py", TOOLS)
    settings(project, eval_rollouts=1, tools="words", max_steps=2)
    project.scenarios(train=1, sweep=1, timeout_s=0.5 if code == "timeout" else 100)
    result = project.pages().learn(*LOUD)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert server.requests
    found = project.events("rollout")
    assert [(r["status"], r["failure"]["code"]) for r in found] == [("error", code)] * 2
    report = project.report()
    assert report["faults"] == {"errors": {code: 2}, "failed": {}}
    assert [(epoch["errors"], epoch["gt_score"]["n"]) for epoch in report["epochs"]] == [(2, 0)]
    assert project.manifest()["status"] == "incomplete"
    assert_no_key(project, result.stdout.str() + result.stderr.str())


@pytest.mark.parametrize("kind", ["answer", "refusal", "no JSON"])
def test_a_teacher_or_judge_that_tells_the_key_is_told_without_it(
    project: Project, serve: Serve, kind: str
) -> None:
    def answer(body: Body, _: int) -> Reply | str:
        if body["model"] == "m":
            return "3" if body["seed"] % 2 else "4"
        told = {"answer": fake_model.text(ECHO), "refusal": fake_model.refused(400, ECHO)}
        return echoed(told.get(kind) or Reply(body=b"KEY KEY KEY"))

    server = serve(answer)
    settings(project, optimizer="llm", teacher="openai:teacher", judge="openai:judge")
    project.scenarios(rubric=["It is short."])
    result = project.pages().learn(*LOUD)
    assert {body["model"] for body in server.requests} == {"m", "teacher", "judge"}
    assert (project.root / "out" / "recording.jsonl").read_text().count('"kind":"call"') > 2
    assert_no_key(project, result.stdout.str() + result.stderr.str())


def test_a_successful_run_shows_the_key_nowhere(project: Project, serve: Serve) -> None:
    serve(lambda request, _: "3")
    project.scenarios()
    result = project.pages().learn(*LOUD)
    assert result.ret == 0
    assert_no_key(project, result.stdout.str() + result.stderr.str())


def test_wrong_figures_of_use_are_unknown_and_the_answer_counts(project: Project, serve: Serve) -> None:
    wrong = iter(fake_model.WRONG_USAGE)
    server = serve(lambda request, _: fake_model.text("3", usage=next(wrong)))
    project.write("models.yaml", PRICED)
    settings(project, eval_rollouts=1, concurrency=1)
    assert project.scenarios(train=0, sweep=len(fake_model.WRONG_USAGE)).learn().ret == 0
    assert len(server.requests) == len(project.events("rollout")) == len(fake_model.WRONG_USAGE)
    for rollout in project.events("rollout"):
        assert rollout["status"] == "ok"
        assert rollout["cost_usd"] is None or 0 <= rollout["cost_usd"] < 10
        assert 0 <= rollout["tokens"] < 10_000


def test_a_burst_of_errors_is_got_over(project: Project, serve: Serve) -> None:
    replies = [fake_model.refused(500), fake_model.rate_limited("0")]
    server = serve(lambda request, attempt: replies[attempt] if attempt < 2 else "3")
    project.write("models.yaml", "endpoints: {default: {retries: 3}}\n")
    assert one_call(project).scenarios(train=0, sweep=1, timeout_s=30).learn().ret == 0
    assert len(server.requests) == 3


def test_waiting_for_room_in_the_budget_is_no_part_of_a_rollouts_time(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3", delay_s=0.06)
    settings(project, max_tokens=50_000, budget_tokens=90_000)  # room for one call at a time
    assert project.scenarios(train=0, sweep=15, timeout_s=1.2).learn().ret == 0
    assert server.most_in_flight == 1
    assert len(server.requests) == 30
    assert project.report()["faults"] == {"errors": {}, "failed": {}}


def test_a_budget_counts_what_a_resumed_run_has_spent(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    settings(project, max_tokens=50, budget_tokens=6000)
    project.scenarios(train=30, sweep=30).learn()
    asked = len(server.requests)
    project.learn("--tfgrpo-resume")
    assert len(server.requests) <= asked + 1
    assert sum(tokens for tokens, _ in used(server)) <= 6000


def test_a_rollout_that_the_budget_broke_off_is_paid_once_more_and_counted(
    project: Project, serve: Serve
) -> None:
    def answer(request: Body, _: int) -> Reply:
        done = request["messages"][-1]["role"] == "tool"
        reply = fake_model.text("3") if done else fake_model.calls(("lookup", {"key": "three"}))
        assert isinstance(reply.body, dict)
        return replace(reply, body=reply.body | {"usage": fake_model.usage(200, 20)})

    server = serve(answer, delay_s=0.005)
    project.write("words.py", TOOLS)
    settings(project, tools="words", max_tokens=50)
    project.scenarios(train=10, sweep=10)
    first = project.learn("--tfgrpo-budget-tokens", "9000")
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    assert 4500 < len(server.requests) * 220 <= 9000
    assert all(rollout["status"] == "ok" for rollout in project.events("rollout"))
    assert project.learn("--tfgrpo-resume", "--tfgrpo-budget-tokens", "100000").ret == 0
    assert 2 * 40 < len(server.requests) <= 2 * 40 + 20
    assert project.report()["cost"]["tokens"] == len(server.requests) * 220


def test_a_budget_in_dollars_needs_a_price(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3")
    settings(project, budget_usd=1)
    result = project.scenarios().learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*price of *m* is unknown*"])
    assert server.requests == []
