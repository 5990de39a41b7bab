"""A report from the journal: what labels make of it, and what is said of a gate that is judged again."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.report.labels import forty

from pytest_tfgrpo.cli.runs import rendering, report
from pytest_tfgrpo.core.errors import BaselineError, JournalError, SettingError
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.settings import resolve


@pytest.mark.parametrize(
    ("labels", "added"),
    [
        (None, {}),
        (SimpleNamespace(labels={}), {}),
        (SimpleNamespace(labels={"a": 1.0}), {"labels": "of run1"}),
        (
            JournalError("labels.json is damaged"),
            {"warnings": ["w", "labels are left out: labels.json is damaged"]},
        ),
    ],
)
def test_labels_stand_in_a_report_and_damaged_ones_are_said(
    labels: Any, added: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(folder: Path) -> Any:
        if isinstance(labels, Exception):
            raise labels
        return labels

    monkeypatch.setattr(rendering, "load_labels", load)
    monkeypatch.setattr(rendering, "labels_report", lambda run, labels: f"of {run.run_id}")
    run: Any = SimpleNamespace(run_id="run1")
    made: Any = {"warnings": ["w"]}
    assert rendering._labelled(tmp_path, run, made) is made, "there is no file of labels"
    (tmp_path / "labels.json").touch()
    assert rendering._labelled(tmp_path, run, made) == made | added


@pytest.fixture
def concluded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Have gates end at once; returns what each is judged with."""
    found: list[dict[str, Any]] = []

    def conclude(run: Run, **given: Any) -> Any:
        found.append(given)
        return SimpleNamespace(verdict="the verdict")

    def load(path: Path) -> str:
        if path.stem == "gone":
            raise BaselineError("gone.json is missing")
        return path.name

    monkeypatch.setattr(rendering, "conclude", conclude)
    monkeypatch.setattr(rendering, "load", load)
    return found


@pytest.mark.parametrize(
    ("settings", "reference", "baseline", "notes"),
    [
        ({}, None, None, []),
        ({"baseline": "main"}, None, "main.json", []),
        ({"baseline": "main"}, "a reference", None, []),
        ({"baseline": "gone"}, None, None, ["checked without its baseline: gone.json is missing"]),
        ({"gates": "gates.toml"}, None, None, ["named gates were not checked again"]),
    ],
)
def test_a_gate_is_judged_again_with_what_is_still_there(
    settings: dict[str, str], reference: Any, baseline: str | None, notes: list[str],
    concluded: list[dict[str, Any]], tmp_path: Path,
) -> None:  # fmt: skip
    run = forty()
    odd = replace(run.scenarios[0], checks=(Check(kind="of_a_plugin", params={}),))
    run = replace(
        run,
        settings=resolve(settings, {}, {}).values,
        reference=reference,
        scenarios=(odd, *run.scenarios[1:]),
    )
    said: list[str] = []
    project: Any = SimpleNamespace(root=tmp_path)
    assert rendering._judged(project, run, said) == "the verdict"  # type: ignore[comparison-overlap]
    assert said == notes
    (given,) = concluded
    assert (given["gated"], given["baseline"]) == (True, baseline)
    assert given["kinds"]["of_a_plugin"].name == "of_a_plugin"
    assert "exact" in given["kinds"]


def test_a_plain_run_is_judged_where_a_gate_is_set_alone(concluded: list[Any], tmp_path: Path) -> None:
    project: Any = SimpleNamespace(root=tmp_path)
    for settings, verdict in (({}, None), ({"gate_min_mean": "0.5"}, "the verdict")):
        values = resolve(settings, {}, {}).values
        run: Any = SimpleNamespace(is_plain=True, settings=values, reference=None, scenarios=())
        assert rendering._judged(project, run, []) == verdict


def arguments(**given: Any) -> Namespace:
    known = {"verbose": 0, "quiet": 0, "agents": False, "run": "latest", "compare": [], "what_if": None}
    return Namespace(**{**known, "html": None, **given})


def test_agents_are_compared_and_no_other_option_goes_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def compared(runs: Any, folders: Any, **given: Any) -> list[str]:
        seen.update(given, runs=runs, folders=folders)
        return ["a line"]

    folders = {"a": tmp_path / "1-a", "b": tmp_path / "1-b"}
    monkeypatch.setattr(report, "project_of", lambda _: SimpleNamespace(task_id="demo"))
    monkeypatch.setattr(report, "find_agents", lambda project, wanted: folders)
    monkeypatch.setattr(report, "read", lambda project, folder: f"run {folder.name}")
    monkeypatch.setattr(report, "compare_agents", compared)
    assert list(report.report(arguments(agents=True, verbose=2, quiet=1))) == ["a line"]
    assert seen["runs"] == {"a": "run 1-a", "b": "run 1-b"}
    assert (seen["folders"], seen["task"], seen["verbosity"]) == (folders, "demo", 1)
    for other in ({"compare": ["previous"]}, {"what_if": [(0.9, 0.9)]}, {"html": "x.html"}):
        with pytest.raises(SettingError, match="--agents goes with none of --compare, --what-if and --html"):
            list(report.report(arguments(agents=True, **other)))


def test_as_many_runs_are_compared_as_there_are_letters_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "run_before", lambda project, folder, name: tmp_path / name)
    most = len(report.LETTERS) - 1
    names = [f"run{n}" for n in range(most + 1)]
    project: Any = None
    assert report._others(project, tmp_path, names[:most]) == [tmp_path / name for name in names[:most]]
    with pytest.raises(JournalError, match=f"^--compare is given {most + 1} times; at most {most} runs fit"):
        report._others(project, tmp_path, names)
    with pytest.raises(JournalError, match=r"^--compare names the run run1 twice; name each run once"):
        report._others(project, tmp_path, ["run1", "run2", "run1"])


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Have a run reported that is made of values alone; returns what was made of it."""
    seen: dict[str, Any] = {"pages": []}

    def versus(first: Any, run: Any, more: Any) -> str:
        seen["versus"] = (first, run, more)
        return "compared"

    run_folder = tmp_path / "out" / "latest"
    run_folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "project_of", lambda _: None)
    monkeypatch.setattr(report, "find_run", lambda project, wanted: run_folder)
    monkeypatch.setattr(report, "run_before", lambda project, folder, name: tmp_path / name)
    monkeypatch.setattr(report, "read", lambda project, folder: f"run {folder.name}")
    monkeypatch.setattr(
        report,
        "rendered",
        lambda project, folder: rendering.Rendering("this run", {"files": "stored"}),  # type: ignore[arg-type,typeddict-item]
    )
    monkeypatch.setattr(report, "terminal", lambda value, *, verbosity: [f"{value} at {verbosity}"])
    monkeypatch.setattr(report, "versus", versus)
    monkeypatch.setattr(report, "example_lines", lambda compared, runs: ("e", *runs))
    monkeypatch.setattr(report, "compare_lines", lambda one, *, verbosity, example: [f"{one}: {example}"])
    monkeypatch.setattr(report, "what_if", lambda run, accuracies: f"if {accuracies} held")
    monkeypatch.setattr(report, "html", lambda *given: seen["pages"].append(given) or "a page")
    monkeypatch.setattr(
        report, "write_page", lambda folder, *given: (folder / "report.html").write_text("own")
    )
    return seen


def test_a_report_names_its_folder_and_what_another_judge_would_mean(shown: dict[str, Any]) -> None:
    lines = list(report.report(arguments(what_if=[(0.9, 0.8)], quiet=2)))
    page = "page   out/latest/report.html"
    assert lines == ["{'files': 'out/latest'} at -2", "if [(0.9, 0.8)] held", page]
    assert Path("out/latest/report.html").read_text() == "own"
    assert list(report.report(arguments(html="mine.html")))[-1] == "page   mine.html"
    assert Path("mine.html").read_text() == "a page"
    assert shown["pages"] == [({"files": "stored"}, "this run", None, [])]


def test_a_comparison_has_a_page_of_its_own_named_after_the_others(shown: dict[str, Any]) -> None:
    lines = list(report.report(arguments(compare=["a b/ö", "c" * 150])))
    before = ["run ö", f"run {'c' * 150}"]
    assert lines[0] == f"compared: ('e', '{before[0]}', 'this run', '{before[1]}')"
    assert shown["versus"] == (before[0], "this run", before[1:])
    (page,) = Path("out/latest").glob("compare-*")
    assert page.name == f"compare-{('_-' + 'c' * 150)[:100]}.html"
    assert lines[1] == f"page   out/latest/{page.name}"
    assert shown["pages"] == [({"files": "stored"}, "this run", "compared", before)]
    assert next(report.report(arguments(compare=["a"], quiet=1))) == "compared: ()"
    assert list(report.report(arguments(compare=["a"], html="own.html")))[1] == "page   own.html"


@pytest.fixture
def rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what is known of a run whose report is made from its journal, by parts that end at once."""
    known: dict[str, Any] = {
        "stored": None,
        "run": replace(forty(), warnings=("of the run",), finished_at="now"),
    }

    def build(run: Run, verdict: Any, **more: Any) -> dict[str, Any]:
        return {"warnings": list(run.warnings), "gate": verdict, **more}

    monkeypatch.setattr(rendering, "load_run", lambda folder: known["run"])
    monkeypatch.setattr(rendering, "read_report", lambda folder: known["stored"])
    monkeypatch.setattr(rendering, "is_open", lambda journal: known.get("open", False))
    monkeypatch.setattr(rendering, "build", build)
    monkeypatch.setattr(rendering, "_judged", lambda project, run, notes: notes.append("judged") or "verdict")
    monkeypatch.setattr(rendering, "_labelled", lambda folder, run, report: report | {"labels": "of people"})
    return known


def test_a_stored_report_gives_its_gate_and_the_lines_of_hooks(
    rebuilt: dict[str, Any], tmp_path: Path
) -> None:
    project: Any = SimpleNamespace(root=tmp_path)
    rebuilt["stored"] = {
        "finished_at": "now",
        "sections": ["s"],
        "files": "f",
        "warnings": ["w"],
        "gate": "g",
    }
    made: Any = rendering.rendered(project, tmp_path / "run1").report
    assert made == {"warnings": ["w"], "gate": "g", "sections": ["s"], "files": "f", "labels": "of people"}
    rebuilt["stored"]["finished_at"] = "before"
    made = rendering.rendered(project, tmp_path / "run1").report
    old = "report.json is older than the journal; checked again with the built-in rules"
    warnings = ["of the run", old, "judged"]
    assert made == {"warnings": warnings, "gate": "verdict", "files": "run1", "labels": "of people"}


def test_a_run_that_ended_otherwise_than_by_a_kill_keeps_its_reason(
    rebuilt: dict[str, Any], tmp_path: Path
) -> None:
    project: Any = SimpleNamespace(root=tmp_path, resume=lambda run_id: f"resume {run_id}")
    for status, reason, said in (
        ("complete", "killed", "killed"),
        ("incomplete", "the budget is used up", "the budget is used up"),
        ("incomplete", "killed", f"killed; finish it with resume {rebuilt['run'].run_id}"),
    ):
        rebuilt["run"] = replace(rebuilt["run"], status=status, reason=reason)
        assert rendering.read(project, tmp_path).reason == said
    rebuilt["open"] = True
    assert rendering.read(project, tmp_path).reason.startswith(
        "it is still running; follow it with tfgrpo view"
    )
    made: Any = rendering.rendered(project, tmp_path / "run1").report
    assert made == {"warnings": ["of the run"], "gate": None, "files": "run1"}
