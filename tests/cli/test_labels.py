"""The commands ``tfgrpo labels ...``: what may be drawn once there are labels."""

import csv
import io

import pytest
from support.journals import write_run
from support.project import Project
from support.report.labels import filled, forty, save
from support.tools import tfgrpo

from pytest_tfgrpo.cli.runs import labels as command
from pytest_tfgrpo.report.judging.label_file import load_labels


def test_once_there_are_labels_the_same_sample_may_be_drawn_again_and_no_smaller_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(project.name_task("demo").root / "out/demo/runs/run1", [])
    monkeypatch.setattr(command, "load_run", lambda _: forty())
    tfgrpo("labels", "sample", "--tasks=12")
    labelled = filled(folder / "labels.csv", "1")
    save(folder / "labels.csv", labelled)
    for _ in range(2):
        tfgrpo("labels", "read")
        known = load_labels(folder)
        assert known is not None
        assert known.reads == (len(known.labels),), "to read the same again is no news"
    tfgrpo("labels", "sample", "--tasks=12", "--file=again.csv")
    assert load_labels(folder) == known
    again = (project.root / "again.csv").read_text("utf-8-sig")
    assert list(csv.reader(io.StringIO(again))) == labelled
    tfgrpo("labels", "sample", "--tasks=13", "--file=more.csv")
    assert len((project.root / "more.csv").read_text("utf-8-sig")) > len(again)
    assert "Only --tasks may grow" in tfgrpo("labels", "sample", "--tasks=11", "--file=less.csv", code=1)


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "x"])
def test_numbers_of_tasks_and_answers_are_from_1_on(number: str) -> None:
    for flag in ("--tasks", "--answers"):
        told = tfgrpo("labels", "sample", f"{flag}={number}", code=2)
        assert f"must be a whole number from 1 on, not '{number}'" in told
