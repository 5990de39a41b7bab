"""``tfgrpo view``: which page counts as fresh, how long a run that ended may take, and what is opened."""

import os
import webbrowser
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli.runs import history, view
from pytest_tfgrpo.cli.runs.view import RunSite, is_fresh
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.report.page import choice


def put(folder: Path, ages: dict[str, int]) -> None:
    """Write files of a run's folder, each that many seconds old."""
    folder.mkdir(exist_ok=True)
    for name, age in ages.items():
        (folder / name).write_text("x")
        os.utime(folder / name, (2_000_000_000 - age, 2_000_000_000 - age))


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what reports say: all runs have ended with it."""
    said: dict[str, Any] = {"finished_at": "then", "scenarios": []}
    monkeypatch.setattr(view, "read_report", lambda folder: said or None)
    monkeypatch.setattr(view, "ended_at", lambda journal, at: at == "then")
    return said


@pytest.mark.parametrize(
    ("ages", "scenarios", "fresh"),
    [
        ({"report.json": 5, "report.html": 4}, 0, True),
        ({"report.json": 4, "report.html": 4}, 0, True),
        ({"report.json": 3, "report.html": 4}, 0, False),
        ({"report.json": 5, "labels.json": 3, "report.html": 4}, 0, False),
        ({"report.json": 5, "labels.json": 5, "report.html": 4}, 0, True),
        ({"report.json": 5}, 0, False),
        ({"report.json": 5, "report.html": 4}, choice.ROWS, True),
        ({"report.json": 5, "report.html": 4}, choice.ROWS + 1, False),
    ],
)
def test_a_page_is_fresh_where_all_that_it_is_made_of_is_older(
    ages: dict[str, int], scenarios: int, fresh: bool, tmp_path: Path, reports: dict[str, Any]
) -> None:
    put(tmp_path, ages)
    reports["scenarios"] = [{}] * scenarios
    assert is_fresh(tmp_path) is fresh
    reports["finished_at"] = "at another time"
    assert not is_fresh(tmp_path)
    reports.clear()
    assert not is_fresh(tmp_path)


def test_a_page_of_many_scenarios_needs_the_file_beside_it(tmp_path: Path, reports: dict[str, Any]) -> None:
    put(tmp_path, {"report.json": 5, "report.html": 4, view.DETAILS: 5})
    reports["scenarios"] = [{}] * (choice.ROWS + 1)
    assert is_fresh(tmp_path)
    put(tmp_path, {view.DETAILS: 3})
    assert not is_fresh(tmp_path)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the site of a run that has ended without a report, on a clock of its own."""
    clock = SimpleNamespace(now=100.0, open=False, fresh=False)
    monkeypatch.setattr(view, "is_open", lambda journal: clock.open)
    monkeypatch.setattr(view, "is_fresh", lambda folder: clock.fresh)
    monkeypatch.setattr(view.time, "monotonic", lambda: clock.now)
    site: Any = RunSite(SimpleNamespace(task_id="demo"), tmp_path)  # type: ignore[arg-type]
    site._journal = SimpleNamespace(run=SimpleNamespace(finish="complete"), events=0)
    site.clock = clock
    return site


def test_a_run_that_has_ended_has_some_seconds_to_write_its_report(site: Any) -> None:
    assert not site._is_over()
    site.clock.now += view.PATIENCE_S
    assert not site._is_over()
    site.clock.now += 0.5
    assert site._is_over()
    site.clock.open = True
    assert not site._is_over()
    site.clock.open = False
    assert not site._is_over(), "a run that went on has as long again"
    site.clock.fresh = True
    assert site._is_over()
    site.clock.fresh = False
    site._journal.run.finish = None
    assert site._is_over(), "a run that was killed writes none"
    site._journal.run = None
    assert site._is_over()


def test_a_state_says_what_is_wrong_and_whether_more_of_the_journal_is_to_be_read(site: Any) -> None:
    slices: list[float] = []
    site._journal.state = lambda now: {"rows": 3}

    def read(slice_s: float) -> bool:
        slices.append(slice_s)
        return len(slices) < 3

    site._journal.read = read
    site.clock.fresh = True
    assert site._state() == {"rows": 3, "behind": True, "problem": "", "over": False}
    site._journal.events = 9
    assert site._state()["over"] is False
    assert site._state() == {"rows": 3, "behind": False, "problem": "", "over": True}
    assert slices == [view.FIRST_S, view.SLICE_S, view.SLICE_S]

    def broken(slice_s: float) -> bool:
        raise JournalError("line 3 is damaged")

    site._journal.read = broken
    assert site._state() == {"rows": 3, "behind": False, "problem": "line 3 is damaged", "over": False}


def test_names_are_asked_of_the_run_that_is_followed(site: Any) -> None:
    site._journal.run.names = lambda: ["a", "b"]
    assert site("names").body == b'["a","b"]'
    site._journal.run = None
    assert site("names").body == b"[]"
    assert site("other") is None
    assert site("details/" + "0" * 32 + "/rows/1") is None


def test_a_page_from_the_journal_is_made_again_when_that_has_grown(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def write(place: Path, report: object, run: object) -> None:
        made.append(len(made))
        (place / "report.html").write_text(f"page {len(made)}")

    monkeypatch.setattr(view, "rendered", lambda project, folder: SimpleNamespace(report=None, run=None))
    monkeypatch.setattr(view, "write_page", write)
    put(tmp_path, {"journal.jsonl": 9})
    assert [site.page(), site.page()] == [b"page 1", b"page 1"]
    put(tmp_path, {"journal.jsonl": 8})
    assert site.page() == b"page 2"
    (tmp_path / "journal.jsonl").unlink()
    site.clock.now += 99
    site._journal.run = None
    answer = site._shown()
    assert answer.kind == "text/plain"
    assert answer.body.startswith(b"tfgrpo: [Errno 2] No such file")


@pytest.mark.parametrize(
    ("open_", "fresh", "port", "details", "served"),
    [
        (False, True, None, False, ""),
        (False, True, 0, False, "has ended"),
        (False, True, None, True, "has more scenarios than its page holds; this serves all of them"),
        (False, False, None, False, "has no report.html of its end, so its page is made of its journal"),
        (True, True, None, False, "goes on"),
    ],
)
@pytest.mark.parametrize("browser", [True, False, None])
def test_a_page_is_opened_by_its_file_or_by_an_invitation_to_its_server(
    open_: bool, fresh: bool, port: int | None, details: bool, served: str, browser: bool | None,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    class Server:
        address, invitation = "http://here/token/", "http://here/once/"

        def __init__(self, site: object, port: int) -> None:
            seen.append(f"port {port}")

        def __enter__(self) -> "Server":
            return self

        def __exit__(self, *_: object) -> None: ...

        def shutdown(self) -> None:
            seen.append("shut down")

    def opened(address: str) -> bool:
        seen.append(address)
        return bool(browser)

    seen: list[str] = []
    folder = tmp_path / "run1"
    put(folder, {"report.html": 1, **({view.DETAILS: 1} if details else {})})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(view, "project_of", lambda _: None)
    monkeypatch.setattr(view, "find_run", lambda project, wanted: folder)
    monkeypatch.setattr(view, "is_open", lambda journal: open_)
    monkeypatch.setattr(view, "is_fresh", lambda folder: fresh)
    monkeypatch.setattr(view, "_opened", opened)
    monkeypatch.setattr(view, "PageServer", Server)
    monkeypatch.setattr(view, "serve", lambda server: SimpleNamespace(join=lambda: seen.append("joined")))
    site = SimpleNamespace(page=lambda: seen.append("made"))
    monkeypatch.setattr(view, "RunSite", lambda project, folder: site)
    lines = list(view.view(Namespace(run="latest", port=port, no_browser=browser is None)))
    asked = [one for one in seen if "://" in one]
    failed = browser is False
    if not served:
        uri = (folder / "report.html").as_uri()
        said = f"no browser could be opened; the address of the page is {uri}"
        assert lines == ["page   run1/report.html", *([said] if failed else [])]
        assert asked == ([] if browser is None else [uri])
        return
    said = "no browser could be opened; the address above is that of the page"
    end = "Ctrl-C ends the view; the run goes on" if open_ else "Ctrl-C ends the view"
    assert lines == [f"run run1 {served}", "page   http://here/token/", *([said] if failed else []), end]
    assert asked == ([] if browser is None else [Server.invitation])
    assert [one for one in seen if "://" not in one] == [
        *([] if open_ else ["made"]), "port 0", "joined", "shut down",
    ]  # fmt: skip


@pytest.mark.parametrize("broken", ["OSError", "Error"])
def test_a_browser_that_cannot_be_started_is_no_error(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(address: str) -> bool:
        raise {"OSError": OSError, "Error": webbrowser.Error}[broken]

    monkeypatch.setattr(webbrowser, "open", start)
    assert view._opened("http://x") is False


# -- history -----------------------------------------------------------------------------------------------


def test_a_history_links_to_the_pages_that_are_there_as_seen_from_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run 1", "run#2", "none"):
        put(tmp_path / name, {} if name == "none" else {"report.html": 1})
    folders = [tmp_path / name for name in ("run 1", "run#2", "none")]
    assert history._links(folders, tmp_path / "history.html") == {
        "run 1": "./run%201/report.html",
        "run#2": "./run%232/report.html",
    }
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "deep", target_is_directory=True)
    (tmp_path / "elsewhere" / "deep").mkdir()
    assert history._links(folders[:1], tmp_path / "link" / "history.html") == {
        "run 1": "./../../run%201/report.html"
    }


def test_a_journal_without_a_first_event_has_no_header(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    assert history._header(journal) is None
    for text in (b"", b"no journal\n", b"\xff\n", b"[]\n"):
        journal.write_bytes(text)
        assert history._header(journal) is None


def test_ten_runs_are_listed_and_all_are_on_the_page_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = SimpleNamespace(out=tmp_path / "out", task_id="demo")
    folders = [tmp_path / f"run{n}" for n in range(12)]
    seen: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(history, "project_of", lambda _: project)
    monkeypatch.setattr(history, "list_runs", lambda out, task: folders)
    monkeypatch.setattr(history, "_run_in", lambda folder: folder.name)
    monkeypatch.setattr(history, "history_lines", lambda runs, shown: [f"{len(runs)} runs, {shown} shown"])
    monkeypatch.setattr(history, "history_page", lambda task, runs, links: seen.update(runs=runs) or task)
    (tmp_path / "out" / "demo").mkdir(parents=True)
    lines = list(history.history(Namespace(html=None)))
    assert lines == ["12 runs, 10 shown", "page   out/demo/history.html"]
    assert list(history.history(Namespace(html="own.html")))[1] == "page   own.html"
    assert (tmp_path / "own.html").read_text() == "demo"
    assert len(seen["runs"]) == 12
    folders.clear()
    for elsewhere, said in (("add --task-id x", "add --task-id x"), ("", "run pytest --tfgrpo")):
        monkeypatch.setattr(history, "other_tasks", lambda project, told=elsewhere: told)
        assert list(history.history(Namespace(html=None))) == [
            f"no runs of task 'demo' under {tmp_path / 'out'}; {said}"
        ]
