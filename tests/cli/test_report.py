"""The command ``tfgrpo report``: from the journal, whatever became of the run, and two runs side by side."""

import fcntl
import json
import re

import pytest
from support import frozen as frozen_projects
from support.cli.report import kill, lines_of
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.cli import parser


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def test_a_page_can_be_written_elsewhere(learned: Project) -> None:
    page = (learned.runs()[0] / "report.html").read_bytes()
    assert tfgrpo("report", "--html", "page.html", "-q").endswith("\npage   page.html\n")
    assert (learned.root / "page.html").read_bytes() == page
    assert "--html FILE" in tfgrpo("report", "--html", "no/folder/page.html", code=1)
    assert "it is a folder" in tfgrpo("report", "--html", ".", code=1)


@pytest.mark.parametrize("event", ["run", "rollout", "phase", "revision"])
def test_a_killed_run_is_shown_as_far_as_it_got(learned: Project, event: str) -> None:
    folder = learned.runs()[0]
    kill(folder, event)
    shown = " ".join(tfgrpo("report").split())
    resume = f"killed; finish it with pytest --tfgrpo --tfgrpo-resume={folder.name}"
    assert shown.startswith(f"No result yet: the run has not ended. the run is incomplete: {resume}")
    assert "there is no report.json; checked with the built-in rules" in shown
    assert "gate FAILED" in shown
    assert not (folder / "report.json").exists()
    assert resume in (folder / "report.html").read_text()


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_that_goes_on_is_called_neither_killed_nor_failed(learned: Project, resumed: bool) -> None:
    folder = learned.runs()[0]
    before = (folder / "report.json").read_bytes()
    kill(folder, "rollout")
    if resumed:
        (folder / "report.json").write_bytes(before)  # of its first end
    with (folder / "journal.jsonl").open("ab") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        shown = tfgrpo("report")
    told = " ".join(shown.split())
    follow = f"it is still running; follow it with tfgrpo view {folder.name}"
    assert told.startswith(f"No result yet: the run has not ended. the run is incomplete: {follow}")
    page = (folder / "report.html").read_text()
    assert follow in page
    for text in (shown, page[: page.index("<script")]):
        assert "FAILED" not in text
        assert "resume" not in text
        assert "report.json" not in text


def test_a_killed_run_without_a_gate_is_told_once_how_to_finish_it(project: Project) -> None:
    project.ini(actor="python:agent:learner", task_id="demo", out="out").scenarios(sweep=3).pages().run()
    kill(project.runs()[0], "rollout")
    shown = " ".join(tfgrpo("report").split())
    assert "gate FAILED" not in shown
    assert shown.count("finish it with") == 1


def test_without_its_report_a_run_is_judged_again(learned: Project) -> None:
    folder = learned.runs()[0]
    verdict = learned.report()["gate"]["outcome"]
    (folder / "report.json").unlink()
    shown = tfgrpo("report", "-q")
    assert "there is no report.json; checked with the built-in rules" in shown
    assert f"gate  {'passed' if verdict == 'pass' else verdict}" in shown


def test_a_stored_report_keeps_the_words_of_its_warnings(learned: Project) -> None:
    path = learned.runs()[0] / "report.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "warnings": ["as it was worded then"]}))
    shown = tfgrpo("report")
    assert [line for line in shown.splitlines() if line.startswith("warning: ")] == [
        "warning: as it was worded then"
    ]


def test_a_damaged_report_is_named_and_done_without(learned: Project) -> None:
    path = learned.runs()[0] / "report.json"
    for text in ("{", "[]", '{"schema": "other/1"}'):
        path.write_text(text)
        shown = "".join(tfgrpo("report").split())  # a long path is broken anywhere
        assert "/report.json" in shown
        assert "checkedagainwiththebuilt-inrules" in shown
        assert path.read_text() == text


def test_a_report_of_an_earlier_end_of_the_run_is_not_taken_for_its_own(learned: Project) -> None:
    path = learned.runs()[0] / "report.json"
    path.write_text(json.dumps(learned.report() | {"finished_at": "2020-01-01T00:00:00.000Z"}))
    assert "report.json is older than the journal" in " ".join(tfgrpo("report").split())


def test_a_damaged_journal_is_named_with_its_line(learned: Project) -> None:
    journal = learned.runs()[0] / "journal.jsonl"
    rows = lines_of(journal.parent)
    rows[4] = rows[4].replace(b'"data"', b'"dada"')
    journal.write_bytes(b"".join(rows))
    assert f"{journal}:5: this line of the journal cannot be relied on: it is damaged" in tfgrpo(
        "report", code=1
    )
    journal.write_bytes(rows[1])
    assert f"{journal}:1: this line of the journal cannot be relied on" in tfgrpo("report", code=1)


def test_a_journal_that_does_not_hold_together_is_no_bug(learned: Project) -> None:
    from pytest_tfgrpo.runs.journal.journal import encode

    journal = learned.runs()[0] / "journal.jsonl"
    header = json.loads(lines_of(journal.parent)[0])["data"]
    journal.write_bytes(encode(1, "run", header | {"library": {"hash": 3}}))
    assert f"{journal} is not a consistent journal: " in tfgrpo("report", code=1)


def test_no_previous_run_is_an_error(learned: Project) -> None:
    only = learned.runs()[0].name
    assert "no run 'previous' of task 'demo'" in tfgrpo("report", "previous", code=1)
    assert f"there is no run before {only}" in tfgrpo("report", "--compare", "previous", code=1)


def test_without_any_run_it_says_what_to_do(project: Project) -> None:
    assert "there are none yet; run pytest --tfgrpo" in tfgrpo("report", code=1)


def test_hostile_names_of_runs_are_told_in_print(learned: Project) -> None:
    hostile = learned.runs()[0].with_name("\x1b[2Jevil")
    hostile.mkdir()
    (hostile / "journal.jsonl").write_bytes(b"{}\n")
    for argv in (["../../etc"], ["\x1b[2J"], ["a\nb"], ["x" * 5000], ["--", "--"], ["*"]):
        assert "\x1b" not in tfgrpo("report", *argv, code=1), argv


def test_a_run_beside_itself_is_no_claim(learned: Project) -> None:
    shown = tfgrpo("report", "--compare", "latest")
    assert shown.startswith("result  not sure whether B is better or worse than A: both are the same run;")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("0.9,0.8", [(0.9, 0.8), (0.9, 0.8)]),
        ("1, .5 ,0.25,0", [(1.0, 0.5), (0.25, 0.0)]),
        ("0.9,0.8,0.7", None),
        ("0.9,1.1", None),
        ("0.9,nan", None),
        ("good,bad", None),
    ],
)
def test_a_judge_may_be_of_another_accuracy_in_each_sweep(
    given: str, read: list[tuple[float, float]] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", f"--what-if={given}"]
    if read is not None:
        assert parser().parse_args(words).what_if == read
        return
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert "must be two or four numbers from 0 to 1" in capsys.readouterr().err


def test_the_id_of_a_scenario_lists_its_rollouts_and_the_command_that_shows_one(learned: Project) -> None:
    scenario = next(s["id"] for s in learned.report()["scenarios"] if s["split"] == "eval")
    shown = tfgrpo("show", scenario).splitlines()
    assert re.fullmatch(rf"{scenario}: \d+ rollouts? in run {learned.runs()[0].name}", shown[0])
    assert shown[1].split() == ["rollout", "status", "score", "why"]
    assert len(shown) == int(shown[0].split()[1]) + 3
    assert all(len(row) <= 80 for row in shown)
    command = shown[-1].removeprefix("next: tfgrpo show ")
    rows = [row.split() for row in shown[2:-1]]
    last = [row for row in rows if row[0].partition(".")[0] == rows[-1][0].partition(".")[0]]
    assert len(last) < len(rows)
    assert (command, min(row[2] for row in last)) in [(row[0], row[2]) for row in last]
    assert f"{learned.runs()[0].name}.{command}" in tfgrpo("show", command)


def test_a_misspelt_scenario_has_its_nearest(learned: Project) -> None:
    scenario = learned.report()["scenarios"][0]["id"]
    assert f"did you mean {scenario!r}?" in tfgrpo("show", f"{scenario}x", code=1)
