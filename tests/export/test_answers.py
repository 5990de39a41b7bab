"""The answers of a run as CSV: what programs and spreadsheets read of it, and when nothing is written."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from support.journals import group_events, make_training_group, write_run

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.export.answers import export_answers
from pytest_tfgrpo.launch.result_rows import rows_of


def write(folder: Path, *answers: str, status: str = "complete", force: bool = False) -> list[str]:
    """Export a run with these answers to ``answers.csv`` in its folder; return what is said."""

    def change(rollout: Rollout) -> Rollout:
        return replace(rollout, answer=answers[rollout.index])

    events = group_events(make_training_group([1.0] * len(answers), change=change)) if answers else []
    write_run(folder, events, status=status, identities={"actor": {"name": "offline", "identity": {}}})
    return list(export_answers(folder, folder / "answers.csv", rows_of, force=force))


def test_each_rollout_is_a_row_as_rfc_4180_has_them(tmp_path: Path) -> None:
    answers = ['He said "17", and left', "two\nlines\r\nor three", "Größe 5 \ud800", "plain"]
    assert write(tmp_path, *answers) == [f"{tmp_path / 'answers.csv'}: 4 rows of run run1"]
    data = (tmp_path / "answers.csv").read_bytes()
    assert data.startswith(
        b"agent,scenario,split,domain,tags,prompt,phase,epoch,rollout,status,answer,passed,"
    )
    assert b',"He said ""17"", and left",' in data
    assert data.endswith(b",run1,1.0\r\n")
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] for row in rows] == [*answers[:2], "Größe 5 ?", "plain"]
    assert [(row["agent"], row["rollout"], row["passed"], row["error"]) for row in rows] == [
        ("offline", str(n), "True", "") for n in range(4)
    ]


@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ("=1+1", "'=1+1"),
        (" =1+1", "' =1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("＝1", "'＝1"),
        ("\t=1", "'\t'=1"),
        ("\0=1", "'\0=1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("a;=1", "a;'=1"),
        ('a; "=1', "a;' \"=1"),
        ("a\n-1+cmd", "a\n'-1+cmd"),
        ("list:\n- one\n- two", "list:\n- one\n- two"),
        ("-5", "-5"),
        ("+1,000.5", "+1,000.5"),
        ("-1e-9", "-1e-9"),
        ("a = b", "a = b"),
        ("", ""),
    ],
)  # fmt: skip
def test_no_answer_is_a_formula_and_numbers_stay(tmp_path: Path, answer: str, cell: str) -> None:
    write(tmp_path, answer)
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        assert [row["answer"] for row in csv.DictReader(file)] == [cell]


def test_nothing_is_written_of_an_unfinished_run_or_one_without_rollouts(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="run run1 is cancelled; export it when it has ended"):
        write(tmp_path, "a", status="cancelled")
    with pytest.raises(ExportError, match="run run1 has no rollout to export"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]


def test_an_earlier_export_is_replaced_by_force_and_a_foreign_file_never(tmp_path: Path) -> None:
    write(tmp_path, "a")
    with pytest.raises(ExportError, match="or replace it with --force"):
        write(tmp_path, "b")
    write(tmp_path, "b", force=True)
    assert b",b," in (tmp_path / "answers.csv").read_bytes()
    (tmp_path / "answers.csv").write_text("mine")
    with pytest.raises(ExportError, match="is not an earlier export"):
        write(tmp_path, "c", force=True)
