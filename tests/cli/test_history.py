"""The command ``tfgrpo history``: the runs of a task, on the terminal and as a page."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from support import frozen as frozen_projects
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def test_runs_that_came_to_nothing_are_listed_plainly(learned: Project) -> None:
    whole = learned.runs()[0]
    runs = whole.parent
    for name in ("20990101T000001-killed", "20990101T000002-goes-on", "20990101T000003-older"):
        shutil.copytree(whole, runs / name)
    (runs / "20990101T000001-killed" / "report.json").unlink()
    old = runs / "20990101T000003-older" / "report.json"
    old.write_text(json.dumps(json.loads(old.read_text()) | {"schema": "tfgrpo.report/0"}))
    shutil.copytree(whole, runs / "20990101T000004-no-journal")
    (runs / "20990101T000004-no-journal" / "journal.jsonl").write_text("no journal\n")
    with (runs / "20990101T000002-goes-on" / "journal.jsonl").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        shown = tfgrpo("history").splitlines()
    assert [row.split()[1] for row in shown[2:4]] == ["killed", "running"]
    assert shown[4].split()[1:3] == ["unusable", "report"]
    assert "unusable report: damaged, or of another version; see `tfgrpo report RUN`" in shown
    assert shown[5].split()[1] == "killed"
    page = (learned.root / "out/demo/history.html").read_text()
    assert "unusable report" in page
    assert "5 runs, of which 1 swept the whole suite to the end" in page


DAMAGED = ("[]", "null", "{", '{"schema": "tfgrpo.report/1"}', "\x00" * 50)


def test_a_damaged_report_hides_no_other_run(learned: Project) -> None:
    whole = learned.runs()[0]
    damaged = whole.parent / "20990101T000001-damaged"
    shutil.copytree(whole, damaged)
    finished = json.loads((whole / "report.json").read_text())["finished_at"]
    for report in DAMAGED:
        text = report.replace('/1"', f'/1", "finished_at": "{finished}"')
        (damaged / "report.json").write_text(text)
        for command in ("history", "runs"):
            shown = tfgrpo(command).splitlines()
            assert shown[1].startswith(whole.name[:15]), report
            assert "unusable report" in shown[2], report


def test_a_pipe_or_a_folder_in_place_of_a_journal_stops_nothing(learned: Project) -> None:
    whole = learned.runs()[0]
    for name, make in (("20990101T000001-pipe", os.mkfifo), ("20990101T000002-folder", Path.mkdir)):
        (whole.parent / name).mkdir()
        make(whole.parent / name / "journal.jsonl")
    for command in ("history", "runs"):
        shown = tfgrpo(command).splitlines()
        assert shown[1].startswith(whole.name[:15])
        assert [row.split()[1] for row in shown[2:4]] == ["killed", "killed"]
    assert "it is not a regular file" in tfgrpo("report", "20990101T000001-pipe", code=1)
    assert "it is not a regular file" in tfgrpo("view", "--no-browser", "20990101T000001-pipe", code=1)
    assert "it is not a regular file" in tfgrpo("export", "20990101T000001-pipe", "--format=rollouts", code=1)
    assert f"{whole.name}.e3.suite-eval0.r0" in tfgrpo("show", "e3.suite-eval0.r0")
    assert "not searched: cannot read the journal" in tfgrpo("show", "e9.nowhere.r0", code=1)


def test_the_hint_to_resume_a_killed_run_names_the_task_and_the_folder(learned: Project) -> None:
    folder = learned.runs()[0]
    shutil.move(learned.root / "out" / "demo", learned.root / "else where" / "other")
    moved = learned.root / "else where" / "other" / "runs" / folder.name
    (moved / "report.json").unlink()
    journal = moved / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-5]))
    flags = ("--out", "else where", "--task-id", "other")
    hint = f"pytest --tfgrpo --tfgrpo-task-id=other '--tfgrpo-out=else where' --tfgrpo-resume={folder.name}"
    assert hint in tfgrpo("runs", *flags)
    assert hint in " ".join(tfgrpo("report", *flags).split())


def test_without_runs_it_says_what_to_do(project: Project) -> None:
    project.ini(task_id="demo")
    assert "run pytest --tfgrpo" in tfgrpo("history")
    assert not (project.root / "out").exists()


def test_a_plain_run_that_writes_nothing_starts_no_git(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_tfgrpo.runs import commit as module

    monkeypatch.setattr(module, "subprocess", None)
    project.scenarios()
    (project.root / ".git").mkdir()
    project.run().assert_outcomes(passed=2)
