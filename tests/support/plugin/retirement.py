"""What the tests of plugin/test_retirement.py share with the slow ones."""

from pytest_tfgrpo.learning.library.library import load_library, of, save_library
from pytest_tfgrpo.suite.packs import builtin_pack
from support.builders import make_experience
from support.project import Project

AGENT = """
import agent

def hasty(context):
    agent._log(context)
    return "4" if "guess at once" in context.prompt.system or context.seed % 8 == 0 else "3"
"""
HARMFUL = "For the words of a letter, guess at once."
HARMLESS = "For the words of a letter, take a moment."
SETTINGS = {
    "actor": "python:hasty:hasty",
    "optimizer": "none",
    "task_id": "demo",
    "contamination": "warn",
    "library": "library.json",
    "epochs": 2,
    "group_size": 2,
    "eval_rollouts": 2,
    "lesson_dropout": 0.4,
}


def begin(project: Project) -> None:
    project.write("hasty.py", AGENT)
    project.tasks(train=100, dev=24, eval=2)
    stamp = builtin_pack().stamp
    lessons = [
        make_experience(n, summary32=text, stamp_signature=stamp, prompt_pack_id="default")
        for n, text in enumerate((HARMFUL, HARMLESS))
    ]
    save_library(project.root / "library.json", of(lessons))
    project.ini(**SETTINGS, sample_size=40).learn("-q")


def texts(project: Project) -> list[str]:
    return [e.summary32 for e in load_library(project.root / "out/demo/library.json").experiences]
