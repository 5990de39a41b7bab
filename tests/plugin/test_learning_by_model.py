"""Learning by a language model as a user meets it: pytest, a server, a library that grew."""

import json
from collections import Counter

import pytest
from support import fake_model
from support.fake_model import Body, FakeModel, Reply, Serve, refused
from support.plugin.learning_by_model import ARGUMENTS, LESSON, answer, lessons, pupil, said, stage, teacher
from support.project import Project


@pytest.fixture
def learning(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    settings = {"group_size": 4, "eval_mode": "separate", "epochs": 1}
    return project.ini(actor="openai:small", **settings).scenarios(train=6, sweep=3)


def to_teacher(server: FakeModel) -> list[Body]:
    return [body for body in server.requests if body["model"] == "big"]


def test_a_lesson_of_the_teacher_helps_in_the_final_sweep(learning: Project, serve: Serve) -> None:
    server = serve(answer)
    learning.run(*ARGUMENTS).assert_outcomes(passed=13)
    report = learning.report()
    assert lessons(learning) == [LESSON]
    assert report["epochs"][-1]["gt_score"]["mean"] == 1.0
    assert report["epochs"][0]["gt_score"]["mean"] < 1.0
    stages = Counter(map(stage, to_teacher(server)))
    assert stages["consolidation"] == 1
    assert stages["critique"] == report["epochs"][1]["informative_groups"] > 1
    assert all(body["response_format"]["type"] == "json_schema" for body in to_teacher(server))


def test_without_a_teacher_the_actors_model_teaches(learning: Project, serve: Serve) -> None:
    def alone(body: Body, attempt: int) -> str:
        return teacher(body) if body["messages"][0]["content"].startswith("You coach") else pupil(body)

    server = serve(alone)
    learning.run("--tfgrpo", "--tfgrpo-optimizer", "llm").assert_outcomes(passed=13)
    assert {body["model"] for body in server.requests} == {"small"}
    assert lessons(learning) == [LESSON]


def test_a_recorded_run_learns_the_same_again_without_a_server(learning: Project, serve: Serve) -> None:
    server = serve(answer)
    learning.run(*ARGUMENTS, "--tfgrpo-record", "recording.jsonl").assert_outcomes(passed=13)
    asked_before = len(server.requests)
    learning.run(*ARGUMENTS, "--tfgrpo-actor", "replay:recording.jsonl").assert_outcomes(passed=13)
    assert len(server.requests) == asked_before
    first, second = (json.loads((run / "report.json").read_text()) for run in learning.runs())
    assert first["run_id"] != second["run_id"]
    assert first["library"]["hash"] == second["library"]["hash"]
    assert lessons(learning) == [LESSON]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (refused(404, "no such model as big"), "HTTP 404: no such model as big"),
        (refused(401, "wrong key"), "HTTP 401: wrong key"),
        (fake_model.NOT_JSON, "not a completion"),
    ],
)
def test_a_teacher_that_cannot_be_asked_ends_the_run_before_anything_is_paid_for(
    learning: Project, serve: Serve, refusal: Reply, words: str
) -> None:
    server = serve(answer, hello=lambda body, attempt: refusal)
    result = learning.run(*ARGUMENTS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "the run is incomplete: the teacher does not answer" in said(result)
    assert words in said(result)
    assert server.requests == []
    report = learning.report()
    assert report["status"] == "incomplete"
    assert report["gate"]["outcome"] == "fail"
    assert (report["cost"]["calls"], report["cost"]["failed"]) == (1, 1)


def test_a_run_whose_teacher_was_away_goes_on_when_it_is_back(learning: Project, serve: Serve) -> None:
    away = True
    server = serve(answer, hello=lambda body, attempt: refused(401) if away else "ok")
    assert learning.run(*ARGUMENTS).ret == pytest.ExitCode.TESTS_FAILED
    away = False
    assert learning.run(*ARGUMENTS, "--tfgrpo-resume").ret == 0
    assert (len(learning.runs()), len(server.hellos)) == (1, 2)
    assert lessons(learning) == [LESSON]


def test_a_teacher_that_answers_some_calls_of_an_epoch_ends_nothing(learning: Project, serve: Serve) -> None:
    lost = 0

    def flaky(body: Body, attempt: int) -> Reply | Body | str:
        nonlocal lost
        if body["model"] == "big" and stage(body) == "critique" and not lost:
            lost += 1
            return refused(400, "context length exceeded")
        return answer(body, attempt)

    serve(flaky)
    learning.run(*ARGUMENTS).assert_outcomes(passed=13)
    assert learning.report()["library"]["failures"] == {"rejected": 1}
