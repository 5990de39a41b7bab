"""The command ``tfgrpo runs``: the runs of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.cli.lookup import other_tasks, read_report
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.texts.text import number, table
from pytest_tfgrpo.report.cost import spent
from pytest_tfgrpo.report.gates import overall
from pytest_tfgrpo.report.run_history.past_runs import UNREADABLE, past_run
from pytest_tfgrpo.runs.journal.journal import ended_at, is_open
from pytest_tfgrpo.runs.journal.journal_contents import list_runs


def runs(arguments: Arguments) -> Iterator[str]:
    """List the runs of the task, oldest first."""
    project = project_of(arguments)
    rows, killed = [], ""
    for folder in list_runs(project.out, project.task_id):
        status, report = _status(folder)
        rows.append(
            [folder.name, status, "-", "-", "-", "-"] if report is None else _row(folder.name, report)
        )
        killed = folder.name if status == "killed" else killed
    if rows:
        yield from table(["run", "status", "gate", "eval mean", "gain", "cost"], rows, left=3)
        if killed:
            yield f"to finish a killed run, use: {project.resume(killed)}"
    else:
        elsewhere = other_tasks(project) or "run pytest --tfgrpo"
        yield f"no runs of task {project.task_id!r} under {project.out}; {elsewhere}"


def _status(folder: Path) -> tuple[str, Mapping[str, Any] | None]:
    """Return what became of a run, and its report if it has one that can be read."""
    if is_open(folder / JOURNAL):
        return "running", None
    try:
        report = read_report(folder)
        if report is None or not ended_at(folder / JOURNAL, str(report.get("finished_at"))):
            return "killed", None
    except JournalError:
        return UNREADABLE, None
    status = past_run(folder.name, report).state
    return status, None if status == UNREADABLE else report


def _row(run_id: str, report: Mapping[str, Any]) -> list[str]:
    evals = [row["gt_score"]["mean"] for row in report["epochs"] if row["mode"] == "eval"]
    gain = report["gain"]["difference"] if report["gain"] else None
    return [
        run_id,
        report["status"],
        overall(report["gate"]) if report["gate"] else "-",
        number(evals[-1] if evals else None),
        "-" if gain is None else f"{gain:+.3f}",
        spent(report["cost"]) if "cost" in report else "-",
    ]
