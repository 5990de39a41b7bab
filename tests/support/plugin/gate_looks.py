"""What the tests of plugin/test_gate_looks.py share with the slow ones."""

from typing import Any

import pytest

from pytest_tfgrpo.runs.journal.journal_contents import load_run
from support.project import Project

NOISY = """
def solve(context):
    return "3" if context.seed % 10 < {of_ten} else "4"
"""


def save_noisy(project: Project) -> None:
    project.scenarios(train=0, sweep=12).agent(NOISY.format(of_ten=8))
    project.ini(actor="python:agent2:solve", min_score=0)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=15").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent2:solve", min_score=0, baseline="main", seed=7)


def look_again(project: Project) -> pytest.RunResult:
    save_noisy(project)
    return project.run(*MORE)


def rule(project: Project) -> dict[str, Any]:
    (found,) = [r for r in project.report()["gate"]["results"] if r["name"] == "baseline"]
    return found  # type: ignore[no-any-return]


def made(project: Project) -> int:
    (row,) = project.report()["epochs"]
    return row["rollouts"]  # type: ignore[no-any-return]


MORE = ("--tfgrpo-out=out", "--tfgrpo-gate-alarm=0.0001", "--tfgrpo-gate-margin=0")
LEARNER = """
from pathlib import Path


def solve(context):
    '''Solve 8 of 10 rollouts, and 2 of 3 with a lesson.'''
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    taught = "<experiences" in context.prompt.system
    right = context.seed % 3 if taught else context.seed % 10 < 8
    tool = {"kind": "tool", "name": "count_words" if right else "guess", "output": "3", "tokens": 2}
    return {"answer": "3" if right else "4", "frames": [tool | {"cost_usd": 0.001}]}


solve.paid = True
"""


def save_learner(project: Project) -> None:
    project.scenarios(train=6, sweep=8).scenarios("more", train=0, sweep=4, domain="other").agent(LEARNER)
    own = {"actor": "python:agent2:solve", "min_score": 0, "allow_paid": "true", "group_size": 4, "epochs": 2}
    project.ini(**own)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=8").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    (project.root / "calls.log").unlink()
    project.ini(**own, eval_rollouts=2, baseline="main", seed=7, acceptance="off")


def learn(project: Project) -> None:
    save_learner(project)
    project.learn(*MORE)


def sizes(project: Project) -> dict[str, set[int]]:
    """Return how many rollouts the groups of each sweep of the latest run have."""
    phases = load_run(project.runs()[-1]).phases
    return {
        result.phase.mode: {len(group.rollouts) for group in result.counted}
        for result in phases
        if result.phase.mode != "train"
    }
