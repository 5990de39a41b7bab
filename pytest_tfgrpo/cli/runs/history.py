"""The command ``tfgrpo history``: the runs of a task over time, on the terminal and as a page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_tfgrpo.cli.lookup import other_tasks, read_report
from pytest_tfgrpo.cli.page_file import write
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.files import JOURNAL, REPORT_HTML, open_plain
from pytest_tfgrpo.report.run_history.lines import history_lines
from pytest_tfgrpo.report.run_history.page import history_page
from pytest_tfgrpo.report.run_history.past_runs import UNREADABLE, past_run, unreported
from pytest_tfgrpo.runs.journal.journal import decode, ended_at, is_open
from pytest_tfgrpo.runs.journal.journal_contents import list_runs

if TYPE_CHECKING:
    from pytest_tfgrpo.report.run_history.past_runs import PastRun

SHOWN = 10
"""Runs on the terminal."""
PAGE = "history.html"


def history(arguments: Arguments) -> Iterator[str]:
    """Print the last ten runs of the task, and write a page of all."""
    project = project_of(arguments)
    folders = list_runs(project.out, project.task_id)
    if not folders:
        elsewhere = other_tasks(project) or "run pytest --tfgrpo"
        yield f"no runs of task {project.task_id!r} under {project.out}; {elsewhere}"
        return
    runs = [_run_in(folder) for folder in folders]
    yield from history_lines(runs, SHOWN)
    target = Path(arguments.html) if arguments.html else project.out / project.task_id / PAGE
    page = history_page(project.task_id, runs, _links(folders, target))
    yield write(target, lambda: write_text(target, page))


def _run_in(folder: Path) -> PastRun:
    """Return what is known of a run; whatever is wrong with its files is said in its place."""
    journal, header = folder / JOURNAL, _header(folder / JOURNAL)
    if is_open(journal):
        return unreported(folder.name, "running", header)
    try:
        report = read_report(folder)
        if report is None or not ended_at(journal, str(report.get("finished_at"))):
            return unreported(folder.name, "killed", header)
    except JournalError:
        return unreported(folder.name, UNREADABLE, header)
    return past_run(folder.name, report)


def _header(journal: Path) -> Mapping[str, Any] | None:
    """Return the data of a journal's first event; None where it has none that can be read."""
    try:
        with open_plain(journal) as file:
            event = decode(file.readline()[:-1])
    except (OSError, ValueError):
        return None
    return event.data if event is not None and isinstance(event.data, dict) else None


def _links(folders: list[Path], page: Path) -> dict[str, str]:
    """Return where the pages of runs are, as seen from `page`, by run id."""
    found = {}
    for target in (folder / REPORT_HTML for folder in folders):
        if target.is_file():
            path = os.path.relpath(target.resolve(), page.resolve().parent)
            found[target.parent.name] = "./" + quote(path.encode("utf-8", "surrogateescape"))
    return found
