"""What the tests of plugin/test_learning_by_model.py share with the slow ones."""

import pytest

from support.fake_model import Body, Reply
from support.project import Project
from support.teachers import asked, operation, says

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


def lessons(project: Project) -> list[str]:
    return [lesson["text"] for lesson in project.report()["library"]["lessons"]]


def said(result: pytest.RunResult) -> str:
    """Return what the terminal shows, its lines unwrapped."""
    return " ".join(result.stdout.str().split())
