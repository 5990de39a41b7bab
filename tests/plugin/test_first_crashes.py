"""A wrong agent is found early, as a user meets it: the run ends, and goes on once the fault is mended."""

import pytest
from support.project import Project

AGENT = """
import os

def solve(context):
    with open("asked.log", "a") as log:
        log.write("x")
    if context.task.id in os.environ.get("RIGHT", ""):
        return "3"
    return os.environ["AGENT_KEY"]
"""


def asked(project: Project) -> int:
    return len((project.root / "asked.log").read_text())


@pytest.fixture
def keyless(project: Project) -> Project:
    project.ini(actor="python:agent2:solve", concurrency=1, out="out").agent(AGENT)
    return project.scenarios(train=0, sweep=12)


def test_a_run_whose_first_rollouts_crash_alike_ends_and_is_resumed(
    keyless: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_KEY", raising=False)
    result = keyless.run()
    result.assert_outcomes(failed=1, skipped=11)
    text = " ".join(result.stdout.str().split())
    assert "the first 8 rollouts all failed with one message: crash: KeyError: 'AGENT_KEY'" in text
    assert "finish it with --tfgrpo-resume" in text
    assert asked(keyless) == 8
    assert keyless.events("rollout") == []
    monkeypatch.setenv("AGENT_KEY", "3")
    keyless.run("--tfgrpo-resume").assert_outcomes(passed=12)
    assert asked(keyless) == 8 + 12


def test_crashes_are_results_where_one_rollout_is_answered(
    keyless: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_KEY", raising=False)
    monkeypatch.setenv("RIGHT", "suite-eval6")
    keyless.run().assert_outcomes(failed=11, passed=1)
    assert len(keyless.events("rollout")) == asked(keyless) == 12


def test_a_suite_too_small_to_tell_is_scored(keyless: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_KEY", raising=False)
    keyless.scenarios(train=0, sweep=7).run().assert_outcomes(failed=7)
    assert len(keyless.events("rollout")) == 7
    keyless.scenarios(train=0, sweep=2).run("--tfgrpo-eval-rollouts=6").assert_outcomes(failed=2)
    assert len(keyless.events("rollout")) == 12
