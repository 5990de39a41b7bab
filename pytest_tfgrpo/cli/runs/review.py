"""The command ``tfgrpo review``: where reviewers and checks disagree, and what to change of the suite."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.cli.lookup import LATEST, find_run
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.texts.text import block, few, line, plural, wrapped
from pytest_tfgrpo.review.disagreements import review as review_of
from pytest_tfgrpo.review.lines import change_lines, not_applied_lines, review_lines
from pytest_tfgrpo.review.marks import load_marks
from pytest_tfgrpo.review.patch import suite_change, write_files
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, load_run
from pytest_tfgrpo.suite.suite_files import suite_files

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.review.disagreements import Review
    from pytest_tfgrpo.review.marks import Mark
    from pytest_tfgrpo.review.patch import SuiteChange
    from pytest_tfgrpo.suite.suite_files import SuiteFile

APPLY = "apply"
WIDTH = 80


class Opened(NamedTuple):
    """A review with what it is about."""

    root: Path
    run: Run
    review: Review
    files: Mapping[str, SuiteFile]


def review(arguments: Arguments) -> Iterator[str]:
    """Show where checks and reviewers' marks disagree, or propose changes of checks."""
    words = list(arguments.words)
    applying = words[:1] == [APPLY]
    names = words[applying:]
    if len(names) > 1:
        raise SettingError(f"one run at a time, not {len(names)}; name files of marks behind --marks")
    if not applying and (arguments.patch or arguments.write or arguments.new):
        raise SettingError("--patch, --new and --write belong to `tfgrpo review apply`")
    opened = _open(arguments, names[0] if names else None)
    if applying:
        yield from _apply(arguments, opened)
        return
    yield from review_lines(opened.review, WIDTH)
    if opened.review.false_passes or opened.review.false_fails:
        files = line(shlex.join(arguments.marks))
        yield ""
        yield f"next  tfgrpo review apply {opened.run.run_id} --marks {files}"


def _open(arguments: Arguments, name: str | None) -> Opened:
    project = project_of(arguments)
    marks = load_marks([Path(file) for file in arguments.marks])
    run = load_run(find_run(project, name or _run_of(project, marks)))
    wanted = {mark.scenario_id for mark in marks}
    files, _ = suite_files((s for s in run.scenarios if s.id in wanted), project.root)
    now = {s.id: s.stamp for file in files.values() for s in file.scenarios.values()}
    return Opened(project.root, run, review_of(run, marks, now), files)


def _run_of(project: Project, marks: Sequence[Mark]) -> str:
    """Return the one run of the project that marks are of; raises SettingError where there is not one."""
    known = {folder.name for folder in list_runs(project.out, project.task_id)}
    of = list(dict.fromkeys(mark.run_id for mark in marks))
    here = [id_ for id_ in of if id_ in known]
    if len(here) == 1 or not of:
        return here[0] if here else LATEST
    if here:
        raise SettingError(f"the marks are of {len(here)} runs: {few(here)}; name one before --marks")
    raise SettingError(
        f"the marks are of {plural(len(of), 'run', 'that is', 'that are')} not among those of task "
        f"{project.task_id!r}: {few(of)}; name another task with --task-id or other runs with --out; with a "
        "run before --marks you see the list of marks"
    )


def _apply(arguments: Arguments, opened: Opened) -> Iterator[str]:
    """Propose changes of the scenario files that follow from marks; write them with ``--write``."""
    if arguments.patch and Path(arguments.patch).exists():
        raise SettingError(f"{arguments.patch} exists; name another file with --patch")
    change = suite_change(opened.run, opened.review, opened.files, opened.root, new=arguments.new)
    changes, left_out = list(change_lines(change, WIDTH)), list(not_applied_lines(opened.review, WIDTH))
    yield from changes
    yield from left_out if changes else left_out[1:]  # without the blank line
    if not change.files:
        yield "nothing to change"
        return
    if arguments.patch:
        write_text(Path(arguments.patch), change.diff)
        where = line(os.path.relpath(opened.root))
        yield f"patch  {line(arguments.patch)}; apply it with git apply or patch -p1 in {where}"
    if arguments.write:
        write_files(change.files)
        for changed in change.files:
            yield f"wrote  {line(changed.file.name)}"
    if not (arguments.patch or arguments.write):
        yield ""
        yield block(change.diff).rstrip("\n")
    yield from _consequences(change, new=arguments.new)


def _consequences(change: SuiteChange, *, new: bool) -> Iterator[str]:
    ids = [one.scenario.id for one in change.proposals]
    text = (
        f"{plural(len(ids), 'scenario')} would be judged twice, as before and as a copy ({few(ids)}): "
        "baselines still pair, and both count"
        if new
        else f"{plural(len(ids), 'scenario', 'gets', 'get')} a new stamp by this ({few(ids)}): results in "
        "baselines, effects of lessons and marks from before no longer pair with it. "
        "Run again; then see tfgrpo baseline save"
    )
    yield ""
    yield from wrapped(text, WIDTH)
