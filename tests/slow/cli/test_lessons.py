"""``tfgrpo lessons`` as a user meets it, and what runs tell one another of lessons."""

import json

from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.learning.library.library import load_library

SETTINGS = {"actor": "python:agent:learner", "acceptance": "off", "contamination": "warn", "task_id": "demo"}


def out(*args: str, code: int = 0) -> list[str]:
    """Return the lines that ``tfgrpo lessons`` prints."""
    return tfgrpo("lessons", *args, code=code).splitlines()


def heads(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("do ", "avoid "))]


def test_a_run_lists_what_its_lessons_do(project: Project) -> None:
    project.ini(**SETTINGS, epochs=3, lesson_dropout=0.5).scenarios(train=60, sweep=4)
    project.learn("-q")
    lines = out()
    assert lines[0].startswith("1 active lesson (library ")
    assert "1 run and 60 training groups" in " ".join(lines)
    assert len(heads(lines)) == 1
    assert sum("effect not yet known (needs at least 30 of each): " in line for line in lines) == 1
    assert max(map(len, lines)) <= 80
    assert out("--domain", "none") == ["no lessons of domain 'none'; domains with lessons: text"]
    value = project.report()["attribution"]
    assert value["groups"] == 60
    assert {v["verdict"] for v in value["lessons"]} == {"not_estimable"}


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
