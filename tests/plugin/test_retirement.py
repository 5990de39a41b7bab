"""Retirement as a user meets it: a committed library with a lesson that harms, until runs show that."""

import pytest
from support.builders import make_experience
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.harness.learning.library.library import load_library, of, save_library
from pytest_tfgrpo.harness.suite.packs import builtin_pack

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


@pytest.fixture
def begun(frozen: Frozen) -> Project:
    """Return a project whose committed library does harm, after a first run that cannot show it yet."""
    return frozen(begin)


def texts(project: Project) -> list[str]:
    return [e.summary32 for e in load_library(project.root / "out/demo/library.json").experiences]


def test_a_lesson_that_harms_is_retired_once_enough_groups_of_several_runs_show_it(begun: Project) -> None:
    first = {v["text"]: v for v in begun.report()["attribution"]["lessons"]}
    assert first[HARMFUL]["left_out"] < 30
    assert first[HARMFUL]["verdict"] == "not_estimable"
    assert set(texts(begun)) == {HARMFUL, HARMLESS}

    result = begun.pages().ini(**SETTINGS, sample_size=60, seed=1).learn()
    report = begun.report()
    second = {v["text"]: v for v in report["attribution"]["lessons"]}
    assert report["attribution"]["earlier_groups"] == 40
    assert (second[HARMFUL]["verdict"], second[HARMFUL]["in_force"]) == ("harmful", False)
    assert second[HARMFUL]["ci95"][1] < 0
    assert (second[HARMLESS]["verdict"], second[HARMLESS]["in_force"]) == ("unclear", True)
    assert texts(begun) == [HARMLESS]
    fates = {row["text"]: row["fate"] for row in report["acceptance"]["epochs"][0]["lessons"]}
    assert fates[HARMFUL] == "removed"
    assert report["gain"]["difference"] > 0.5
    result.stdout.fnmatch_lines(["lessons' effect  1 harmful, 1 unclear; *"])
    assert "harmful and retired: 1" in " ".join(result.stdout.str().split())
    page = (begun.runs()[-1] / "report.html").read_text()
    assert "harmful: effect -0." in page

    assert HARMFUL not in tfgrpo("experiences")
    told = " ".join(tfgrpo("experiences", "--all").split())
    assert HARMFUL in told
    assert "not active: removed in epoch 1 of run" in told
    assert "harmful: effect -0." in told


def test_what_a_run_removed_is_named_by_its_id_alone_where_its_journal_is_lost(begun: Project) -> None:
    begun.ini(**SETTINGS, sample_size=60, seed=1).learn("-q")
    (begun.runs()[-1] / "journal.jsonl").write_text("rubbish\n")
    told = " ".join(tfgrpo("experiences", "--all").split())
    assert HARMLESS in told
    assert HARMFUL not in told


def test_without_leaving_out_by_chance_nothing_is_shown_and_nothing_retired(begun: Project) -> None:
    begun.ini(**SETTINGS | {"lesson_dropout": 0}, sample_size=60, seed=1).learn("-q")
    assert begun.report()["attribution"] is None
    assert set(texts(begun)) == {HARMFUL, HARMLESS}
