"""The command ``tfgrpo report``: the report of a run, or of several runs, rebuilt from the journal."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.cli.parsers import Arguments, Subparsers, add_command, project_of
from pytest_tfgrpo.cli.project import Project
from pytest_tfgrpo.core.errors import BaselineError, JournalError, SettingError
from pytest_tfgrpo.core.files import JOURNAL, LABELS, REPORT_HTML, REPORT_JSON, write_text
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings import sets_gate
from pytest_tfgrpo.core.settings.gate import BASELINE, GATES
from pytest_tfgrpo.core.texts.text import line, wrapped

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.gate.verdict import Verdict

UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
GOING_ON = "it is still running"
"""How the reason of a run that goes on starts."""
LONGEST = 100
"""Most characters of a run's id in the name of a page."""


class Rendering(NamedTuple):
    """A run read back from its journal, with the value that its report is made from."""

    run: Run
    report: Report


def declare(commands: Subparsers) -> None:
    """Add the command."""
    command = add_command(commands, "report", report)
    command.add_run("run", nargs="?")
    command.add_task()
    command.add_argument(
        "--compare",
        metavar="RUN",
        action="append",
        default=[],
        help="compare with another run, A: its id as above, or its folder; repeat it for further runs, which "
        "are compared with A too",
    )
    command.add_argument(
        "--agents",
        action="store_true",
        help="compare the agents of a list again; RUN is the start of the id that their runs share",
    )
    command.add_argument(
        "--what-if",
        type=_accuracies,
        metavar="SE,SP",
        help="also print the gain if the judge had this sensitivity and specificity, measured elsewhere, in "
        "both sweeps; SE,SP,SE,SP: in the baseline and in the final sweep",
    )
    command.add_argument("--html", metavar="FILE", help="file of the page (default: in the run's folder)")
    command.add_argument(
        "-v", "--verbose", action="count", default=0, help="show all lessons, tools and gate rules"
    )
    command.add_argument("-q", "--quiet", action="count", default=0, help="show only gain and gate")


def report(arguments: Arguments) -> Iterator[str]:
    """Print the report of a run and write its HTML page, or compare it with others."""
    from pytest_tfgrpo.cli.lookup import find_run
    from pytest_tfgrpo.report.compare_example import example_lines
    from pytest_tfgrpo.report.comparison.compare import versus
    from pytest_tfgrpo.report.comparison.compare_lines import compare_lines
    from pytest_tfgrpo.report.page.html import html, write_page
    from pytest_tfgrpo.report.terminal import terminal

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
            from pytest_tfgrpo.report.judging.labels import what_if

            yield from wrapped(what_if(shown.run, arguments.what_if), 80, hanging="  ")
    if before or arguments.html is not None:
        target = target if arguments.html is None else Path(arguments.html)
        yield write(target, lambda: write_text(target, html(shown.report, shown.run, compared, before)))
    else:
        yield write(target, lambda: write_page(folder, shown.report, shown.run))


def _agents(project: Project, arguments: Arguments, verbosity: int) -> Sequence[str]:
    """Compare the agents of a list, and write the page; raises SettingError and JournalError."""
    from pytest_tfgrpo.cli.lookup import find_agents
    from pytest_tfgrpo.launch.agents import compare_agents

    if arguments.compare or arguments.what_if is not None or arguments.html is not None:
        raise SettingError("--agents goes with none of --compare, --what-if and --html; leave them out")
    folders = find_agents(project, arguments.run)
    runs = {name: read(project, folder) for name, folder in folders.items()}
    return compare_agents(runs, folders, task=project.task_id, verbosity=verbosity, start=Path.cwd())


def _others(project: Project, folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Return the folders of the runs to compare with; raises JournalError."""
    from pytest_tfgrpo.cli.lookup import run_before
    from pytest_tfgrpo.report.comparison.compare_columns import LETTERS

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


def _accuracies(text: str) -> list[tuple[float, float]]:
    """Return sensitivity and specificity of both sweeps; raises ArgumentTypeError."""
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in (2, 4) or not all(0 <= share <= 1 for share in shares):
        raise argparse.ArgumentTypeError(
            f"must be two or four numbers from 0 to 1, as in 0.9,0.8, not {text!r}"
        )
    return [(shares[0], shares[1]), (shares[-2], shares[-1])]


def write(path: Path, written: Callable[[], None]) -> str:
    """Write a page by `written`; returns the line that says so. Raises JournalError."""
    if path.is_dir():
        raise JournalError(f"cannot write the page {path}: it is a folder; name a file with --html")
    try:
        written()
    except JournalError as error:
        raise JournalError(f"{error}; name another place with --html FILE") from error
    return f"page   {line(os.path.relpath(path))}"


def read(project: Project, folder: Path) -> Run:
    """Return the run in `folder` from its journal; raises JournalError if it cannot be read."""
    from pytest_tfgrpo.runs.journal.journal import is_open
    from pytest_tfgrpo.runs.journal.journal_contents import load_run

    run = load_run(folder)
    if run.status != "complete" and run.reason == "killed":
        return replace(
            run,
            reason=f"{GOING_ON}; follow it with tfgrpo view {run.run_id}"
            if is_open(folder / JOURNAL)
            else f"killed; finish it with {project.resume(run.run_id)}",
        )
    return run


def rendered(project: Project, folder: Path) -> Rendering:
    """Return a run and its report, made from the journal.

    What the journal lacks comes from ``report.json`` if it belongs to the same end of the run: the gate, to
    which hooks may have added rules, and lines of hooks. Otherwise the built-in rules are checked again. The
    gate of a run that goes on is open.
    """
    from pytest_tfgrpo.cli.lookup import read_report
    from pytest_tfgrpo.report.value import build

    run = read(project, folder)
    if run.reason.startswith(GOING_ON):
        return Rendering(run, build(run, None, files=os.path.relpath(folder, project.root)))
    try:
        stored, note = read_report(folder), ""
    except JournalError as error:
        stored, note = None, f"{error}; checked again with the built-in rules"
    if stored is not None and stored["finished_at"] != run.finished_at:
        stored, note = None, f"{REPORT_JSON} is older than the journal; checked again with the built-in rules"
    if stored is not None:
        again = build(run, None, sections=stored["sections"], files=stored["files"])
        told = stored["warnings"]
        again["warnings"] = [*told, *(text for text in again["warnings"] if text not in told)]
        return Rendering(run, _labelled(folder, run, again | {"gate": stored["gate"]}))
    notes = [note or f"there is no {REPORT_JSON}; checked with the built-in rules"]
    verdict = _judged(project, run, notes)
    files = os.path.relpath(folder, project.root)
    made = build(replace(run, warnings=(*run.warnings, *notes)), verdict, files=files)
    return Rendering(run, _labelled(folder, run, made))


def _labelled(folder: Path, run: Run, report: Report) -> Report:
    """Return a report with what people's labels make of the gain, where there are any."""
    if not (folder / LABELS).is_file():
        return report
    from pytest_tfgrpo.report.judging.label_file import load_labels
    from pytest_tfgrpo.report.judging.labels import labels_report

    try:
        labels = load_labels(folder)
        return report | {"labels": labels_report(run, labels)} if labels and labels.labels else report
    except JournalError as error:
        return report | {"warnings": [*report["warnings"], f"labels are left out: {error}"]}


def _judged(project: Project, run: Run, notes: list[str]) -> Verdict | None:
    """Return the result of the built-in rules; None without a gate. Problems are added to `notes`."""
    from pytest_tfgrpo.gate.baseline import load, locate
    from pytest_tfgrpo.report.conclusion import conclude
    from pytest_tfgrpo.scoring.checks.registry import KINDS

    if run.is_plain and not sets_gate(run.settings):
        return None
    name, baseline = BASELINE.of(run.settings), None
    try:
        baseline = load(locate(str(name), project.root)) if name and run.reference is None else None
    except BaselineError as error:
        notes.append(f"checked without its baseline: {error}")
    if GATES.of(run.settings):
        notes.append("named gates were not checked again")
    known = {check.kind for scenario in run.scenarios for check in scenario.checks}
    foreign = {kind: replace(KINDS["python"], name=kind) for kind in known - KINDS.keys()}
    return conclude(run, gated=True, kinds={**KINDS, **foreign}, baseline=baseline).verdict
