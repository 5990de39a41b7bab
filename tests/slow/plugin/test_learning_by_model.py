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
from support import ROOT
from support.fake_model import SILENT, Body, Reply, Serve, refused
from support.plugin.learning_by_model import ARGUMENTS, LESSON, answer, lessons, pupil, said, teacher
from support.project import Project

from pytest_tfgrpo.learning.optimizer import llm


@pytest.fixture
def learning(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    settings = {"group_size": 4, "eval_mode": "separate", "epochs": 1}
    return project.ini(actor="openai:small", **settings).scenarios(train=6, sweep=3)


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
