"""What the tests of plugin/test_gate.py share with the slow ones."""

import pytest

from support.project import Project


def save(project: Project) -> None:
    project.scenarios(train=0, sweep=25).ini(actor="python:agent:right")
    assert project.learn().ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent:right", baseline="main")


IMPERFECT = """
def solve(context):
    return "4" if context.scenario.id in ("suite-eval3", "suite-eval7") else "3"
"""


def save_imperfect(project: Project) -> None:
    project.scenarios(train=0, sweep=60).agent(IMPERFECT).ini(actor="python:agent2:solve", min_score=0)
    assert project.run("--tfgrpo-out=out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent2:solve", baseline="main", gate_margin=0.1)


def said(result: pytest.RunResult) -> str:
    """Return the output of a run without its line ends."""
    return " ".join(" ".join(result.outlines).split())
