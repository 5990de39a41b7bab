"""The report of a run, rebuilt from its journal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.cli.lookup import read_report
from pytest_tfgrpo.cli.project import Project
from pytest_tfgrpo.core.errors import BaselineError, JournalError
from pytest_tfgrpo.core.files import JOURNAL, LABELS, REPORT_JSON
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings import sets_gate
from pytest_tfgrpo.core.settings.gate import BASELINE, GATES
from pytest_tfgrpo.gate.baseline import load, locate
from pytest_tfgrpo.launch.conclusion import conclude
from pytest_tfgrpo.report.judging.label_file import load_labels
from pytest_tfgrpo.report.judging.labels import labels_report
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal import is_open
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.scoring.checks.registry import KINDS

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.gate.verdict import Verdict


GOING_ON = "it is still running"
"""How the reason of a run that goes on starts."""


class Rendering(NamedTuple):
    """A run read back from its journal, with the value that its report is made from."""

    run: Run
    report: Report


def read(project: Project, folder: Path) -> Run:
    """Return the run in `folder` from its journal; raises JournalError if it cannot be read."""
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
        again["warnings"] = stored["warnings"]  # as they were worded then
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
    try:
        labels = load_labels(folder)
        return report | {"labels": labels_report(run, labels)} if labels and labels.labels else report
    except JournalError as error:
        return report | {"warnings": [*report["warnings"], f"labels are left out: {error}"]}


def _judged(project: Project, run: Run, notes: list[str]) -> Verdict | None:
    """Return the result of the built-in rules; None without a gate. Problems are added to `notes`."""
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
