"""Learning by a language model as a user meets it: pytest, a server, a library that grew."""

import json
import shlex
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT, fake_model
from support.fake_model import SILENT, Body, FakeModel, Reply, Serve, refused
from support.project import Project
from support.teachers import asked, operation, says

from pytest_tfgrpo.harness.learning.optimizer import llm

LESSON = "For letters: count each of the words, one by one."
ARGUMENTS = ("--tfgrpo", "--tfgrpo-optimizer", "llm", "--tfgrpo-teacher", "openai:big")


def stage(body: Body) -> str:
    """Return the stage of a teacher's request."""
    return "consolidation" if "Several tasks of one domain" in asked(body) else "critique"


def pupil(body: Body) -> str:
    """Be right on some seeds, and always once the prompt carries the lesson."""
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 == 0 else "4"


def teacher(body: Body) -> str:
    """Propose the lesson until it is in force; then keep it."""
    text = asked(body)
    if stage(body) == "consolidation":
        return says(operation(lesson=LESSON, sources=["P1", "P2"]))
    assert "Reward 1.000" in text
    assert "Reward 0.000" in text
    return says(operation("KEEP", "", ids=["L1"]) if f"| {LESSON}" in text else operation(lesson=LESSON))


def answer(body: Body, attempt: int) -> Reply | Body | str:
    return teacher(body) if body["model"] == "big" else pupil(body)


@pytest.fixture
def learning(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    settings = {"group_size": 4, "eval_mode": "separate", "epochs": 1}
    return project.ini(actor="openai:small", **settings).scenarios(train=6, sweep=3)


def lessons(project: Project) -> list[str]:
    return [lesson["text"] for lesson in project.report()["library"]["lessons"]]


def said(result: pytest.RunResult) -> str:
    """Return what the terminal shows, its lines unwrapped."""
    return " ".join(result.stdout.str().split())


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


def test_the_readmes_commands_estimate_learn_within_the_budget_and_replay(
    learning: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    prices = "prices:\n  small: {input: 1, output: 4}\n  large: {input: 2, output: 8}\n"
    learning.write("models.yaml", prices)
    monkeypatch.setenv("TFGRPO_MODELS", "models.yaml")
    estimate, learn, replay = readme_commands()
    server = serve(lambda body, n: teacher(body) if body["model"] == "large" else pupil(body))
    assert learning.run(*estimate).ret == 0
    assert learning.run(*learn, "--co").ret == 0
    assert server.requests == server.hellos == []
    learning.run(*learn).assert_outcomes(passed=13)
    server.close()
    monkeypatch.delenv("OPENAI_API_KEY")
    learning.run(*replay).assert_outcomes(passed=13)
    recorded, replayed = (json.loads((run / "report.json").read_text()) for run in learning.runs())
    assert 0 < recorded["cost"]["usd"] < 2
    assert recorded["cost"]["usd"] == replayed["cost"]["usd"]
    assert recorded["epochs"] == replayed["epochs"]


def readme_commands() -> list[list[str]]:
    """Return the arguments of the README's three runs of pytest with a language model."""
    readme = (ROOT / "README.md").read_text().replace("\\\n", "")
    block = readme.partition("```sh never-run\npytest ")[2].partition("```")[0]
    return [shlex.split(line.removeprefix("pytest ")) for line in block.splitlines()]


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


def test_a_teacher_that_answers_no_call_of_an_epoch_ends_the_run_until_it_is_resumed(
    learning: Project, serve: Serve
) -> None:
    away = True

    def gone(body: Body, attempt: int) -> Reply | Body | str:
        return refused(400, "context length exceeded") if away and body["model"] == "big" else answer(body, 0)

    server = serve(gone)
    result = learning.run(*ARGUMENTS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "the run is incomplete: nothing could be learned: all " in said(result)
    assert "HTTP 400: context length exceeded" in said(result)
    assert learning.report()["status"] == "incomplete"
    paid, away = len(server.requests), False
    assert learning.run(*ARGUMENTS, "--tfgrpo-resume").ret == 0
    small = [body for body in server.requests[paid:] if body["model"] == "small"]
    assert len(small) == 2 * 12  # both sweeps
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


def test_other_prompts_are_another_run_and_broken_ones_a_usage_error(learning: Project, serve: Serve) -> None:
    own = learning.root / "prompt-packs" / "optimizer"
    shutil.copytree(Path(llm.__file__).parent / "prompts" / "optimizer", own)
    stamps = []
    serve(answer)
    for text in ("You coach", "You coach and cheer"):
        system = own / "system.md"
        system.write_text(system.read_text().replace("You coach", text, 1))
        assert learning.cli("stamp", str(own)) == 0
        learning.run(*ARGUMENTS).assert_outcomes(passed=13)
        stamps.append(learning.manifest()["stamps"])
    (own / "critique.md").write_text("Say {{something}}")
    learning.cli("stamp", str(own))
    broken = learning.run(*ARGUMENTS)
    assert stamps[0]["models"] != stamps[1]["models"]
    assert {k: v for k, v in stamps[0].items() if k != "models"} == {
        k: v for k, v in stamps[1].items() if k != "models"
    }
    assert broken.ret == pytest.ExitCode.USAGE_ERROR
    assert "critique.md lacks the placeholder {{attempts}}" in broken.stderr.str() + broken.stdout.str()


def test_a_run_killed_between_learning_calls_pays_for_none_of_them_twice(
    learning: Project, serve: Serve
) -> None:
    learning.ini(actor="openai:small", group_size=4, eval_mode="separate", epochs=1, concurrency=1)
    arrived, held_at = threading.Event(), 3
    answered: Counter[str] = Counter()
    taught = 0

    def interrupted(body: Body, attempt: int) -> Reply | Body | str:
        nonlocal taught
        if body["model"] == "big":
            taught += 1
            if taught == held_at:
                arrived.set()
                return SILENT
            answered[json.dumps(body)] += 1
        return answer(body, attempt)

    server = serve(interrupted)
    process = learning.start(*ARGUMENTS)
    assert arrived.wait(100)
    deadline = time.monotonic() + 100
    while len(learning.events("call")) < held_at and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = len([body for body in server.requests if body["model"] == "small"])
    resumed = learning.start(*ARGUMENTS, "--tfgrpo-resume", learning.runs()[-1].name)
    output, _ = resumed.communicate(timeout=100)
    assert resumed.returncode == 0, output
    assert set(answered.values()) == {1}
    assert len(answered) == taught - 1 == len(learning.events("call")) - len(server.hellos)
    assert len(server.requests) - taught - before == 2 * 12  # both sweeps
    assert lessons(learning) == [LESSON]
