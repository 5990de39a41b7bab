"""The command ``tfgrpo report``: the report of a run, or of several runs, rebuilt from the journal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.lookup import find_agents, find_run, run_before
from pytest_tfgrpo.cli.page_file import write
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import Project, project_of
from pytest_tfgrpo.cli.runs.rendering import read, rendered
from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.core.texts.text import line, wrapped
from pytest_tfgrpo.launch.agents import compare_agents
from pytest_tfgrpo.report.compare_example import example_lines
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.comparison.compare_columns import LETTERS
from pytest_tfgrpo.report.comparison.compare_lines import compare_lines
from pytest_tfgrpo.report.judging.labels import what_if
from pytest_tfgrpo.report.page.html import html, write_page
from pytest_tfgrpo.report.terminal import terminal

if TYPE_CHECKING:
    pass

UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST = 100
"""Most characters of a run's id in the name of a page."""


def report(arguments: Arguments) -> Iterator[str]:
    """Print the report of a run and write its page, or compare it with others."""
    project = project_of(arguments)
    verbosity = arguments.verbose - arguments.quiet
    if arguments.agents:
        yield from _agents(project, arguments, verbosity)
        return
    folder = find_run(project, arguments.run)
    others = _others(project, folder, arguments.compare)
    before = [read(project, other) for other in others]
    shown = rendered(project, folder)
    compared, target = None, folder / REPORT_HTML
    if before:
        compared = versus(before[0], shown.run, before[1:])
        example = example_lines(compared, [before[0], shown.run, *before[1:]]) if verbosity >= 0 else ()
        yield from compare_lines(compared, verbosity=verbosity, example=example)
        names = "-".join(UNFIT.sub("_", other.name) for other in others)
        target = folder / f"compare-{names[:LONGEST]}.html"
    else:
        here = shown.report | {"files": os.path.relpath(folder)}
        yield from terminal(here, verbosity=verbosity)
        if arguments.what_if is not None:
            yield from wrapped(what_if(shown.run, arguments.what_if), 80, hanging="  ")
    if before or arguments.html is not None:
        target = target if arguments.html is None else Path(arguments.html)
        yield write(target, lambda: write_text(target, html(shown.report, shown.run, compared, before)))
    else:
        yield write(target, lambda: write_page(folder, shown.report, shown.run))


def _agents(project: Project, arguments: Arguments, verbosity: int) -> Sequence[str]:
    """Compare the agents of a list, and write the page; raises SettingError and JournalError."""
    if arguments.compare or arguments.what_if is not None or arguments.html is not None:
        raise SettingError("--agents goes with none of --compare, --what-if and --html; leave them out")
    folders = find_agents(project, arguments.run)
    runs = {name: read(project, folder) for name, folder in folders.items()}
    return compare_agents(runs, folders, task=project.task_id, verbosity=verbosity, start=Path.cwd())


def _others(project: Project, folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Return the folders of the runs to compare with; raises JournalError."""
    if len(wanted) >= len(LETTERS):
        raise JournalError(
            f"--compare is given {len(wanted)} times; at most {len(LETTERS) - 1} runs fit beside one"
        )
    found: list[Path] = []
    for name in wanted:
        other = run_before(project, folder, name)
        if other in found:
            raise JournalError(f"--compare names the run {line(other.name)} twice; name each run once")
        found.append(other)
    return found
