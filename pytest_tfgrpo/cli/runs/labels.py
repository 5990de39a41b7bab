"""The commands ``tfgrpo labels ...``: people label a random part of what a judge scored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.lookup import find_run, read_report
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import LABELS, LABELS_FORM, REPORT_JSON
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.report.judging.judge import label_lines
from pytest_tfgrpo.report.judging.label_file import load_labels, read_form, save_labels, write_form
from pytest_tfgrpo.report.judging.labels import Labels, draw, labels_report, sample_of
from pytest_tfgrpo.runs.journal.journal_contents import load_run

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.core.records import Run


def sample(arguments: Arguments) -> Iterator[str]:
    """Write a form with a random sample of judged answers, for people to label."""
    project = project_of(arguments)
    folder = find_run(project, arguments.run)
    run = _finished(project, folder)
    earlier = load_labels(folder)
    if earlier is not None and earlier.labels:
        _require_same(earlier, arguments)
    known = {} if earlier is None else earlier.labels
    drawn = draw(run, tasks=arguments.tasks, answers=arguments.answers, seed=arguments.seed)
    path = _form(arguments, folder)
    write_form(path, drawn, known)
    labels = Labels(
        run_id=run.run_id,
        seed=drawn.seed,
        tasks=arguments.tasks,
        answers=drawn.answers,
        sample=drawn.stamp,
        labels=known,
        reads=() if earlier is None else earlier.reads,
    )
    save_labels(folder, labels)
    yield (
        f"{plural(len(list(drawn.items)), 'answer')} to {plural(len(drawn.tasks), 'task')}, of "
        f"{drawn.judged} that the judge scored in both sweeps; which sweep an answer is of is hidden"
    )
    yield "fill in `label`, from the top down: y or n for each criterion (`y n y`), or the share met, 0 to 1"
    yield f"form   {line(os.path.relpath(path))}"
    yield f"then   tfgrpo labels read {line(run.run_id)}" + (
        f" --file {line(quote(arguments.file))}" if arguments.file else ""
    )


def read(arguments: Arguments) -> Iterator[str]:
    """Store the labels of a form, and print the corrected gain."""
    from dataclasses import replace

    project = project_of(arguments)
    folder = find_run(project, arguments.run)
    run = _finished(project, folder)
    asked = load_labels(folder)
    if asked is None:
        raise JournalError(
            f"no sample of run {run.run_id} was drawn; use `tfgrpo labels sample {run.run_id}`"
        )
    found = read_form(_form(arguments, folder), sample_of(run, replace(asked, labels={})))
    new = () if found == asked.labels else (len(found),)
    labels = replace(asked, labels=found, reads=(*asked.reads, *new))
    block = labels_report(run, labels)
    save_labels(folder, labels)
    report = read_report(folder)
    if report is not None:
        write_json(folder / REPORT_JSON, report | {"labels": block})
    yield from label_lines(block, 80)
    yield f"stored {line(os.path.relpath(folder / LABELS))}; see also tfgrpo report {line(run.run_id)}"


def _require_same(earlier: Labels, arguments: Arguments) -> None:
    """Raise JournalError unless what you request extends a sample of which there are labels."""
    same = (earlier.seed, earlier.answers) == (arguments.seed, arguments.answers)
    if not same or arguments.tasks < earlier.tasks:
        raise JournalError(
            f"run {earlier.run_id} has labels of the sample --tasks={earlier.tasks} "
            f"--answers={earlier.answers} --seed={earlier.seed}; another one would be a choice. "
            "Only --tasks may grow"
        )


def _finished(project: Project, folder: Path) -> Run:
    """Return the run in `folder`; raises JournalError unless it is complete."""
    run = load_run(folder)
    if run.status != "complete":
        raise JournalError(
            f"run {run.run_id} is {run.status}; finish it with {project.resume(run.run_id)} "
            "before people label its answers"
        )
    return run


def _form(arguments: Arguments, folder: Path) -> Path:
    return Path(arguments.file) if arguments.file else folder / LABELS_FORM
