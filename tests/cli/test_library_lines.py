"""What the commands of ``tfgrpo library`` say and write."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience

from pytest_tfgrpo.cli.lookup import COMMITTED
from pytest_tfgrpo.cli.runs import library
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Library, Support
from pytest_tfgrpo.core.settings import resolve

OLD, CHANGED, GONE = (make_experience(n) for n in (1, 2, 3))
NEW = make_experience(4, polarity="avoid", domain="dates", support=Support(groups=1, rollouts=1))
HEIR = replace(make_experience(5), parents=(CHANGED.id,))


def line(n: int) -> str:
    return f"do    text: For counting tasks use count_words, lesson {n}. (1.00 over 2 rollouts)"


AVOID = "avoid dates: For counting tasks use count_words, lesson 4. (1.00 over 1 rollout)"


def found(monkeypatch: pytest.MonkeyPatch, **libraries: Library) -> list[Any]:
    """Let the command find libraries by name; returns what it was asked for."""
    asked: list[Any] = []

    def find(project: object, name: str) -> Any:
        asked.append(name)
        known = libraries[name.replace("@", "_")]
        return known, known.experiences

    monkeypatch.setattr(library, "project_of", lambda arguments: arguments.project)
    monkeypatch.setattr(library, "find_library", find)
    return asked


def arguments(**fields: Any) -> Any:
    project = SimpleNamespace(
        out=Path("/out"), task_id="demo", root=Path("/suite"), settings=resolve({}, {}, {})
    )
    return SimpleNamespace(project=project, **fields)


@pytest.mark.parametrize(
    ("lessons", "lines"),
    [
        ((), ["library cccccccccccc, lessons: 0"]),
        ((OLD, NEW), ["library cccccccccccc, lessons: 2", f"  {line(1)}", f"  {AVOID}"]),
    ],
)
def test_a_library_is_shown_lesson_by_lesson(
    lessons: Any, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = found(monkeypatch, r1=Library(hash="c" * 64, experiences=lessons))
    assert [*library.show(arguments(library="r1"))] == lines
    assert asked == ["r1"]


@pytest.mark.parametrize(("a", "b", "names"), [("r1", None, [COMMITTED, "r1"]), ("r1", "r2", ["r1", "r2"])])
def test_two_libraries_differ_by_what_is_changed_removed_and_added(
    a: str, b: str | None, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Library(hash="b" * 64, experiences=(OLD, CHANGED, GONE))
    after = Library(hash="c" * 64, experiences=(OLD, HEIR, NEW))
    asked = found(monkeypatch, **dict(zip(names, (before, after), strict=True)))
    assert [*library.diff(arguments(a=a, b=b))] == [
        f"--- {names[0]}  bbbbbbbbbbbb, lessons: 3",
        f"+++ {names[1]}  cccccccccccc, lessons: 3",
        f"- {line(2)}",
        f"+ {line(5)}",
        f"- {line(3)}",
        f"+ {AVOID}",
    ]
    assert asked == names


@pytest.mark.parametrize(
    ("gate", "warned"), [(None, False), ({"outcome": "inconclusive"}, False), ({"outcome": "fail"}, True)]
)
def test_a_library_is_promoted_with_all_looks_at_its_eval_split(
    gate: Any, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Library(hash="b" * 64, experiences=(OLD, GONE), looks={"split": ("v1",)})
    after = Library(hash="c" * 64, experiences=(OLD, NEW), looks={"split": ("v2",)})
    asked, saved = found(monkeypatch, committed=before, r1_2=after), []
    given: dict[str, Any] = {
        "find_run": lambda project, name: Path(f"/out/demo/runs/{name}"),
        "load_run": lambda folder: f"run in {folder}",
        "held_back": lambda run, of: () if of is after else [],
        "require_promotable": lambda project, run: Path("lessons.json") if "r1" in run else None,
        "looks_on_disk": lambda out, task_id: (
            {"split": ("v3",)} if (out, task_id) == (Path("/out"), "demo") else {}
        ),
        "save_library": lambda file, found: saved.append((file, found)),
        "read_report": lambda folder: None if gate is None else {"gate": gate},
        "overall": lambda gate: gate["outcome"],
    }
    for name, double in given.items():
        monkeypatch.setattr(library, name, double)
    lines = [*library.promote(arguments(run="r1@2", accept_flagged=[]))]
    told = "wrote lessons.json, lessons: 2 (+1 ~0 -1); review it and commit it"
    assert lines == [told] + ["warning: the gate of run r1 failed; see tfgrpo report r1"] * warned
    assert asked == [COMMITTED, "r1@2"]
    assert saved == [(Path("lessons.json"), replace(after, looks={"split": ("v1", "v2", "v3")}))]


def test_lessons_that_no_prompt_carried_are_held_back_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    after = Library(hash="c" * 64, experiences=(OLD, GONE, NEW))
    saved: list[Any] = []
    found(monkeypatch, committed=Library(hash="b" * 64), r1=after)
    given: dict[str, Any] = {
        "find_run": lambda project, name: Path(name),
        "load_run": lambda folder: None,
        "held_back": lambda run, of: (OLD, NEW),
        "require_promotable": lambda project, run: Path("lessons.json"),
        "looks_on_disk": lambda out, task_id: {},
        "save_library": lambda file, found: saved.append(found),
        "read_report": lambda folder: None,
    }
    for name, double in given.items():
        monkeypatch.setattr(library, name, double)
    assert [*library.promote(arguments(run="r1", accept_flagged=[]))] == [
        "wrote lessons.json, lessons: 1 (+1 ~0 -0); review it and commit it",
        "held back 2 lessons that no prompt of the dev or eval split carried:",
        f"  {line(1)}",
        f"  {AVOID}",
    ]
    assert [one.experiences for one in saved] == [(GONE,)]


@pytest.mark.parametrize(("applied", "own"), [(0, {}), (2, {library.ANY_DOMAIN: "of the project"})])
def test_a_library_is_stamped_again_and_written_where_that_changes_it(
    applied: int, own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "project_of", lambda arguments: arguments.project)
    monkeypatch.setattr(library, "committed_file", lambda project: Path("lessons.json"))
    monkeypatch.setattr(library, "load_packs", lambda folder: {"text": f"packs of {folder}"} | own)
    monkeypatch.setattr(library, "builtin_pack", lambda: "built in")
    monkeypatch.setattr(library, "load_library", lambda file: f"library of {file}")
    monkeypatch.setattr(library, "utc_now", lambda: "now")
    asked, saved = [], []
    revised = Library(hash="c" * 64, experiences=(OLD, NEW))

    def rebased(*given: Any, **more: Any) -> Any:
        asked.append((given, more))
        return SimpleNamespace(applied=[None] * applied, library=revised)

    monkeypatch.setattr(library, "rebased", rebased)
    monkeypatch.setattr(library, "save_library", lambda *given: saved.append(given))
    assert [*library.rebase(arguments())] == [f"lessons.json: stamped {applied} of 2 lessons again"]
    packs = {library.ANY_DOMAIN: "built in", "text": "packs of /suite/prompt-packs"} | own
    assert asked == [(("library of lessons.json", packs), {"run_id": "rebase", "created_at": "now"})]
    assert saved == ([(Path("lessons.json"), revised)] if applied else [])


def test_without_a_committed_library_there_is_nothing_to_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "project_of", lambda arguments: arguments.project)
    monkeypatch.setattr(library, "committed_file", lambda project: None)
    with pytest.raises(
        SettingError, match="library is 'none' \\(the default\\), so there is no file to rebase"
    ):
        [*library.rebase(arguments())]
