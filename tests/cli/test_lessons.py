"""``tfgrpo lessons`` as a user meets it, and what runs tell one another of lessons."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.builders import make_experience
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.cli.runs.lessons import LessonRow, _days, _order
from pytest_tfgrpo.core.lessons import Experience, Tombstone
from pytest_tfgrpo.learning.attribution.effects import UNSEEN
from pytest_tfgrpo.learning.library.experience_store import ExperienceStore
from pytest_tfgrpo.learning.library.library import of, save_library

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


def test_the_most_tried_and_the_most_helpful_lesson_come_first() -> None:
    def row(number: int, groups: int, effect: float | None) -> LessonRow:
        standing = replace(UNSEEN, included=groups)
        return cast(
            "LessonRow",
            SimpleNamespace(experience=make_experience(number), standing=standing, effect=effect),
        )

    rows = [row(0, 3, None), row(1, 9, -0.1), row(2, 5, 0.2)]
    by_support, by_effect = (sorted(rows, key=_order(sort)) for sort in ("support", "effect"))
    assert [rows.index(one) for one in by_support] == [1, 2, 0]
    assert [rows.index(one) for one in by_effect] == [2, 1, 0]


@pytest.mark.parametrize(
    ("made", "days"),
    [
        ("2026-01-01T00:00:00Z", 1.0),
        ("2026-01-01T02:00:00+02:00", 1.0),
        ("2026-01-01T00:00:00", 1.0),
        ("2026-01-03T00:00:00Z", 0.0),
        ("some day", None),
        ("", None),
    ],
)
def test_the_age_of_a_lesson_is_in_days_wherever_it_was_learned(made: str, days: float | None) -> None:
    assert _days(made, datetime(2026, 1, 2, tzinfo=UTC)) == days


def test_a_committed_library_is_listed_without_a_store(project: Project) -> None:
    project.ini(**SETTINGS, library="library.json")
    save_library(project.root / "library.json", of([make_experience(1, summary32="Use count.")]))
    lines = out()
    assert lines[0].startswith("1 active lesson (library ")
    assert "over 0 runs and 0 training groups" in " ".join(lines)
    assert heads(lines) == ["do    text: Use count."]
    assert "there is no lesson store" in out("--export", code=1)[0]


def test_the_store_is_exported_whole_or_by_domain(project: Project) -> None:
    project.ini(**SETTINGS)
    store(project, make_experience(1, domain="alpha"), make_experience(2, domain="beta"))
    assert [json.loads(line)["domain"] for line in out("--export")] == ["alpha", "beta"]
    assert [json.loads(line)["domain"] for line in out("--export", "--domain", "beta")] == ["beta"]


def test_without_store_and_library_it_says_what_to_do(project: Project) -> None:
    project.ini(**SETTINGS)
    (line,) = out(code=1)
    assert line.endswith("run pytest --tfgrpo first")
    assert not (project.root / "out").exists()


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
