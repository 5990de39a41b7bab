"""The commands ``tfgrpo baseline ...``: store the final sweep of a run, show it, compare two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.lookup import COMMITTED, find_library, find_run
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import BaselineError, JournalError, StoreError
from pytest_tfgrpo.core.keys.setting_parsers import is_task_id
from pytest_tfgrpo.core.settings.gate import GATE_ALARM, GATE_MARGIN
from pytest_tfgrpo.gate import baseline
from pytest_tfgrpo.gate.baseline import describe, from_run, load, locate
from pytest_tfgrpo.gate.difference import Bar
from pytest_tfgrpo.gate.pooling import MOST_SWEEPS, drift_of, is_same_build, pooled, sweeps_of
from pytest_tfgrpo.gate.sample_size import red_builds
from pytest_tfgrpo.metrics.looks import merged
from pytest_tfgrpo.report.comparison.baselines import compare_baselines
from pytest_tfgrpo.runs.earlier_runs import looks_on_disk
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, load_run
from pytest_tfgrpo.suite.families import sweeps_of as sweeps_of_run

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.gate.baseline import Baseline
    from pytest_tfgrpo.metrics.looks import Looks


def save(arguments: Arguments) -> Iterator[str]:
    """Store the final sweep of a run as a baseline, with the other sweeps of its build."""
    project = project_of(arguments)
    path = baseline.locate(arguments.name, project.root)
    run = load_run(find_run(project, arguments.run))
    stored = _pooled(project, path, baseline.from_run(run, arguments.name))
    signed = baseline.recordings_of(run, project.root)
    stored = replace(stored, looks=_looks(project, path), recordings=signed)
    baseline.save(path, stored)
    yield from baseline.describe(stored)[:3]
    if stored.sweeps:
        yield f"  pooled from {len(stored.sweeps)} sweeps of this build, whatever their gates said"
    family_of = {id_: row.family for id_, row in sweeps_of_run(run).rows_after.items()}
    rows = {id_: replace(row, family=family_of.get(id_)) for id_, row in stored.scenarios.items()}
    said = red_builds(rows, project.settings.values, sweeps=len(sweeps_of(stored)), drift=drift_of(stored))
    yield from [f"  {said}"] * bool(said)
    yield f"wrote {path}; commit it, and set tfgrpo_baseline = {arguments.name}"


def _pooled(project: Project, path: Path, stored: Baseline) -> Baseline:
    """Return a baseline with the sweeps of its build in the file that is replaced, and of runs on disk."""
    others = []
    with suppress(BaselineError):  # one that is broken is saved again
        others = [load(path)]
    if others and is_same_build(stored, others[0]) and stored.run_id in sweeps_of(others[0]):
        stored = others.pop()
    for folder in reversed(list_runs(project.out, project.task_id)[-MOST_SWEEPS:]):
        with suppress(BaselineError, JournalError):  # what is no whole sweep cannot be pooled
            others.append(from_run(load_run(folder), stored.name))
    return replace(pooled(stored, others), unsigned=None)


def _looks(project: Project, path: Path) -> Looks:
    """Return what eval splits have seen: by runs, the committed library, and the file that is replaced."""
    known = [looks_on_disk(project.out, project.task_id)]
    with suppress(StoreError):
        known.append(find_library(project, COMMITTED)[0].looks)
    with suppress(BaselineError):  # one that is broken is saved again
        known.append(load(path).looks)
    return merged(*known)


def show(arguments: Arguments) -> Iterator[str]:
    """Print a stored baseline."""
    yield from describe(load(locate(arguments.name, project_of(arguments).root)))


def compare(arguments: Arguments) -> Iterator[str]:
    """Print the gate's result for B with A as its baseline."""
    project = project_of(arguments)
    before, after = find(project, arguments.a), find(project, arguments.b)
    margin = GATE_MARGIN.of(project.settings) if arguments.margin is None else arguments.margin
    bar = Bar(margin=margin, alarm=GATE_ALARM.of(project.settings))
    compared = compare_baselines(before, after, bar=bar, strict=arguments.strict)
    yield from compared.lines
    outcome = compared.verdict.outcome
    if outcome == "fail" and (arguments.gate or arguments.strict):
        unseen = compared.verdict.figures.get("answer") == "unseen"
        raise BaselineError(
            f"a drop of {bar.alarm:g} from {arguments.a} to {arguments.b} cannot be excluded"
            if unseen
            else f"{arguments.b} is worse than {arguments.a}"
        )
    if arguments.strict and outcome != "pass":
        raise BaselineError(f"it is inconclusive whether {arguments.b} is worse than {arguments.a}")


def find(project: Project, wanted: str) -> Baseline:
    """Return a baseline by its name or ``.json`` file, else the baseline of a run: its id, or ``latest``.

    Raises BaselineError and JournalError.
    """
    if wanted.endswith(".json") or (is_task_id(wanted) and locate(wanted, project.root).is_file()):
        return load(locate(wanted, project.root))
    try:
        folder = find_run(project, wanted)
    except JournalError as error:
        raise BaselineError(
            f"{wanted!r} is neither a baseline ({project.root / 'baselines'}) nor a run: {error}"
        ) from error
    return from_run(load_run(folder), wanted)
