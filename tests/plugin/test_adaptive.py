"""`concurrency = auto`, from the user's command to the report."""

import os

import pytest
from support import fake_model
from support.fake_model import Body, Reply, Serve
from support.preparing import refusal
from support.project import Project

from pytest_tfgrpo.llm.limits import patience


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    project.write("models.yaml", "endpoints: {default: {retries: 8}}\n")
    return project.ini(
        actor="openai:m", models="models.yaml", concurrency="auto", epochs=2, baseline_sweep="off"
    ).scenarios(train=20, sweep=20)


def test_a_run_finds_the_limit_of_its_server_and_says_where_it_settled(suite: Project, serve: Serve) -> None:
    def answer(body: Body, attempt: int) -> Reply | str:
        return fake_model.rate_limited() if server.in_flight > 5 else "3"

    server = serve(answer, delay_s=0.02)
    result = suite.learn()
    assert result.ret == 0
    (use,) = suite.report()["endpoints"]
    assert use["found"]
    assert use["concurrency"] <= 7
    assert use["calls"] == use["refused"] + 20 * 2 + 20 * 2
    assert suite.report()["faults"] == {"errors": {}, "failed": {}}
    result.stdout.fnmatch_lines([f"endpoint  default: settled at {use['concurrency']} calls at once*"])
    (finish,) = suite.events("finish")
    assert finish["endpoints"] == [use]


def test_a_run_at_a_number_says_nothing_of_endpoints(suite: Project, serve: Serve) -> None:
    serve(lambda *_: "3")
    result = suite.learn("--tfgrpo-concurrency=7")
    assert result.ret == 0
    assert "endpoints" not in suite.report()
    assert "endpoints" not in suite.events("finish")[0]


def test_another_program_that_makes_its_calls_itself_gets_64(project: Project) -> None:
    project.ini(actor="python:agent:half", concurrency="auto", epochs=2).scenarios(train=4, sweep=4)
    assert project.learn().ret == 0
    assert project.manifest()["settings"]["concurrency"] == "auto"
    assert "endpoints" not in project.report()


@pytest.mark.parametrize("value", ["automatic", "0", "-3", "1.5", "10001"])
def test_another_word_is_a_usage_error(project: Project, value: str) -> None:
    said = refusal(project.scenarios(), "--tfgrpo", f"--tfgrpo-concurrency={value}")
    assert said.startswith(
        f"concurrency must be an integer between 1 and 10000, or auto, not {value!r} (flag "
    )


def test_a_server_that_asks_for_an_hour_ends_the_run_and_is_named(
    suite: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = 0

    def answer(body: Body, attempt: int) -> Reply | str:
        nonlocal served
        served += 1
        return "3" if served < 30 else fake_model.rate_limited("3600")

    serve(answer)
    monkeypatch.setattr(patience, "TOTAL_S", 0.5)
    result = suite.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    manifest = suite.manifest()
    assert manifest["status"] == "incomplete"
    assert "the server asks to wait 3600 s" in manifest["reason"]


def test_a_run_goes_on_while_one_endpoint_of_a_pool_is_away(suite: Project, serve: Serve) -> None:
    serve(lambda *_: fake_model.OVERLOADED)
    down = os.environ["OPENAI_BASE_URL"]
    serve(lambda *_: "3")
    up = os.environ["OPENAI_BASE_URL"]
    suite.write(
        "models.yaml",
        f"endpoints:\n  a: {{base_url: '{down}'}}\n  b: {{base_url: '{up}'}}\n"
        "pools: {fleet: [{endpoint: a, weight: 2}, {endpoint: b}]}\n",
    )
    result = suite.learn("--tfgrpo-actor=openai:m@fleet")
    assert result.ret == 0
    report = suite.report()
    assert report["faults"] == {"errors": {}, "failed": {}}
    assert [row["endpoint"] for row in report["endpoints"]] == ["a", "b"]
    (text,) = (text for text in report["warnings"] if "openai:m@fleet" in text)
    assert "endpoint 'a' did not answer" in text
    assert "HTTP 503" in text


def test_an_endpoint_that_is_listed_twice_is_a_usage_error(suite: Project) -> None:
    suite.write("models.yaml", "pools: {fleet: [{endpoint: default}, {endpoint: default}]}\n")
    result = suite.learn("--tfgrpo-actor=openai:m@fleet")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*models.yaml:1: #/pools/fleet/1/endpoint: *'default' is listed twice*"])
