"""``tfgrpo lessons`` as a user meets it, and what runs tell one another of lessons."""

import json
from pathlib import Path

import pytest
from support.builders import make_experience
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.core.lessons import Experience, Tombstone
from pytest_tfgrpo.harness.learning.library.experience_store import ExperienceStore
from pytest_tfgrpo.harness.learning.library.library import load_library, of, save_library

SETTINGS = {"actor": "python:agent:learner", "acceptance": "off", "contamination": "warn", "task_id": "demo"}


def out(*args: str, code: int = 0) -> list[str]:
    """Return the lines that ``tfgrpo lessons`` prints."""
    return tfgrpo("lessons", *args, code=code).splitlines()


def store(project: Project, *records: Experience | Tombstone) -> Path:
    path = project.root / "out" / "demo" / "experiences.jsonl"
    with ExperienceStore.open(path) as opened:
        opened.append(records)
    return path


def heads(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("do ", "avoid "))]


def test_a_run_lists_what_its_lessons_do(project: Project) -> None:
    project.ini(**SETTINGS, epochs=3, lesson_dropout=0.5).scenarios(train=60, sweep=4)
    project.learn("-q")
    lines = out()
    assert lines[0].startswith("2 active lessons (library ")
    assert "1 run and 60 training groups" in " ".join(lines)
    assert len(heads(lines)) == 2
    assert sum("effect not yet known (needs at least 30 of each): " in line for line in lines) == 2
    assert max(map(len, lines)) <= 80
    assert out("--domain", "none") == ["no lessons of domain 'none'; domains with lessons: text"]
    value = project.report()["attribution"]
    assert value["groups"] == 60
    assert {v["verdict"] for v in value["lessons"]} == {"not_estimable"}


def test_all_lists_what_is_no_longer_in_force_and_why(project: Project) -> None:
    project.ini(**SETTINGS)
    old, new, gone = (make_experience(n, summary32=f"Use tool {w}.") for n, w in enumerate("abc"))
    new = make_experience(1, summary32="Use tool b.", parents=(old.id,))
    stone = Tombstone(id=gone.id, run_id="run1", epoch=2, reason="harmful: effect -0.2")
    store(project, old, new, gone, stone)
    lines = out()
    assert [line.partition(": ")[2] for line in heads(lines)] == ["Use tool b."]
    assert "1 active lesson (from the lesson store)" in lines[0]
    assert f"      revises {old.id}: Use tool a." in lines
    lines = out("--all")
    assert len(heads(lines)) == 3
    assert f"      not active: superseded by {new.id}: Use tool b." in lines
    assert "      not active: removed in epoch 2 of run run1: harmful: effect -0.2" in lines


def test_lessons_are_sorted_as_asked(project: Project) -> None:
    project.ini(**SETTINGS)
    store(
        project,
        make_experience(1, summary32="Use b.", domain="alpha", run_id="run2"),
        make_experience(2, summary32="Use a.", domain="beta", run_id="run1"),
    )
    assert [line.split()[1] for line in heads(out("--sort", "domain"))] == ["alpha:", "beta:"]
    assert [line.split()[1] for line in heads(out("--sort", "age"))] == ["beta:", "alpha:"]
    for sort in ("effect", "support"):
        assert len(heads(out("--sort", sort))) == 2


def test_a_committed_library_is_listed_without_a_store(project: Project) -> None:
    project.ini(**SETTINGS, library="library.json")
    save_library(project.root / "library.json", of([make_experience(1, summary32="Use count.")]))
    lines = out()
    assert lines[0].startswith("1 active lesson (library ")
    assert "over 0 runs and 0 training groups" in " ".join(lines)
    assert heads(lines) == ["do    text: Use count."]
    assert "there is no lesson store" in out("--export", code=1)[0]


def test_without_store_and_library_it_says_what_to_do(project: Project) -> None:
    project.ini(**SETTINGS)
    (line,) = out(code=1)
    assert line.endswith("run pytest --tfgrpo first")
    assert not (project.root / "out").exists()


def test_a_store_that_was_moved_away_starts_anew_and_active_lessons_stay_known(project: Project) -> None:
    project.ini(**SETTINGS).scenarios(train=20, sweep=4)
    project.learn("-q")
    path = project.root / "out" / "demo" / "experiences.jsonl"
    before, stored = heads(out()), path.read_bytes()
    assert before
    path.rename(path.with_suffix(".old"))
    assert heads(out()) == before
    project.learn("-q")
    assert len(path.read_bytes().splitlines()) == len(stored.splitlines())
    assert len(heads(out())) == len(before)


def test_an_unreadable_run_is_named_and_the_others_are_listed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.ini(**SETTINGS)
    store(project, make_experience(1, summary32="Use count."))
    folder = project.root / "out" / "demo" / "runs" / "20260101T000000-00000000"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("rubbish\nmore rubbish\n")
    assert project.cli("lessons") == 0
    said = capsys.readouterr()
    assert "warning: run 20260101T000000-00000000 is left out of the lesson effects" in said.err
    assert "Use count." in said.out


def test_hostile_records_are_printed_as_data(project: Project) -> None:
    project.ini(**SETTINGS)
    path = store(project, make_experience(1, summary32="Use count."))
    row = json.loads(path.read_text())
    hostile = {"summary32": "\x1b[2J\u202e ::error::x", "run_id": "a\n::warning::b"}
    path.write_text(json.dumps(row | hostile) + "\n")
    lines = out("--all")
    assert len(heads(lines)) == 1
    for line in lines:
        assert not line or line.isprintable()
        assert not line.lstrip().startswith("::")


def test_a_store_without_a_whole_record_is_said_to_be_empty(project: Project) -> None:
    project.ini(**SETTINGS)
    store(project, make_experience(1)).write_text("rubbish\n")
    (line,) = out()
    assert line.startswith("no lessons in ")


def test_a_later_run_knows_what_earlier_ones_saw_of_its_library(project: Project) -> None:
    project.ini(**SETTINGS, epochs=3, lesson_dropout=0.8).scenarios(train=40, sweep=4)
    project.learn("-q")
    (project.root / "library.json").write_text((project.root / "out/demo/library.json").read_text())
    project.ini(**SETTINGS, epochs=3, lesson_dropout=0.8, library="library.json", seed=1).learn("-q")
    value = project.report()["attribution"]
    assert value["earlier_groups"] == 40
    first = load_library(project.root / "library.json").experiences[0]
    (told,) = [v for v in value["lessons"] if v["text"] == first.summary32][:1]
    assert told["included"] + told["left_out"] > 40
    header = json.loads((project.runs()[-1] / "journal.jsonl").read_text().splitlines()[0])
    assert len(header["data"]["preflight"]["exposures"]) == 40


def test_equal_runs_with_a_library_find_the_same_effects(project: Project) -> None:
    project.ini(**SETTINGS, epochs=3).scenarios(train=40, sweep=4)
    project.learn("-q")
    (project.root / "library.json").write_text((project.root / "out/demo/library.json").read_text())
    project.ini(**SETTINGS, epochs=2, library="library.json")
    found = []
    for _ in range(2):
        project.learn("-q")
        found.append(
            [
                {k: v[k] for k in ("text", "effect", "ci95", "included", "left_out")}
                for v in project.report()["attribution"]["lessons"]
            ]
        )
    assert found[0] == found[1]
