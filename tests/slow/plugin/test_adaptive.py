"""`concurrency = auto`, from the user's command to the report."""

import json

import pytest
from support import fake_model
from support.fake_model import Body, Reply, Serve
from support.project import Project


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    project.write("models.yaml", "endpoints: {default: {retries: 8}}\n")
    return project.ini(
        actor="openai:m", models="models.yaml", concurrency="auto", epochs=2, baseline_sweep="off"
    ).scenarios(train=20, sweep=20)


@pytest.mark.parametrize("concurrency", ["8", "auto"])
def test_agents_side_by_side_share_what_their_server_takes(
    concurrency: str, suite: Project, serve: Serve
) -> None:
    def answer(body: Body, attempt: int) -> Reply | str:
        return fake_model.rate_limited() if concurrency == "auto" and server.in_flight > 5 else "3"

    server = serve(answer, delay_s=0.01)
    suite.write("models.yaml", f"endpoints: {{default: {{retries: 8, concurrency: {concurrency}}}}}\n")
    result = suite.learn("--tfgrpo-concurrency=32", "--tfgrpo-actor=one = openai:m, other = openai:n")
    assert result.ret == 0
    if concurrency == "8":
        assert server.most_in_flight in range(8, 16)  # it counts an answer for a moment after it is there
        return
    reports = [json.loads(path.read_text()) for path in suite.root.glob("out/*/runs/*/report.json")]
    uses = [report["endpoints"][0] for report in reports]
    assert len(uses) == 2
    assert max(use["calls"] for use in uses) == len(server.requests)
    assert all(use["concurrency"] <= 7 for use in uses)


def test_an_interrupted_run_is_resumed_at_another_concurrency(suite: Project, serve: Serve) -> None:
    serve(lambda *_: "3")
    suite.learn("--tfgrpo-budget-s=0.001")
    assert suite.learn("--tfgrpo-resume", "--tfgrpo-concurrency=4").ret == 0
