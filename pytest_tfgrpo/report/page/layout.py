"""What a page is made of: the grid, the rows that it holds, the evidence of lessons, and other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.report.blocks.flaky import FLAKY
from pytest_tfgrpo.report.comparison import compare_columns
from pytest_tfgrpo.report.comparison.compare_columns import LETTERS
from pytest_tfgrpo.report.page import choice, page_tables
from pytest_tfgrpo.report.page.beside import Beside, beside, final_alone, final_groups
from pytest_tfgrpo.report.page.evidence import LessonEvidence, evidence
from pytest_tfgrpo.report.page.grid import Grid, grid, grid_of_run
from pytest_tfgrpo.suite.families import sweeps_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """All that a page and the file beside it take from a run and its report; read from them once."""

    run_id: str
    actor: str
    """That runs a scenario again; empty where the project's own does."""
    run: Run | None
    cells: Grid
    name: str = "B"
    """Of this run among those that it is compared with."""
    place: int = 1
    """Its place among them."""
    evidence: Mapping[str, LessonEvidence] = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    """Scenarios that the report calls flaky."""
    clusters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Scenarios of each cluster of failures."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    others: list[Beside] = field(default_factory=list)
    """Runs that it is compared with, over the scenarios that the page holds."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the pages of these runs, by name."""
    alone: bool = False
    """Whether the page shows the final sweeps of all runs alike, and nothing else of this run."""


def layout(
    report: Report,
    run: Run | None = None,
    compare: Mapping[str, Any] | None = None,
    others: Sequence[Run] = (),
) -> Layout:
    """Return what the page of a report is made of."""
    cells, faults = grid(report, run), page_tables.faults(report, run)
    if len(cells.rows) > choice.ROWS:
        differ = [row["scenario"] for row in compare_columns.changed(compare)] if compare else []
        cells = choice.chosen(cells, choice.ROWS, [*choice.linked(report, run, faults), *differ])
    views = report["failures"]["views"].values() if "failures" in report else ()
    return Layout(
        run_id=report["run_id"],
        actor=ACTOR.of(report["settings"]) or "",
        run=run,
        cells=cells,
        evidence={} if run is None else evidence(cells, run),
        flaky=frozenset(row["scenario"] for row in FLAKY.of(report) or ()),
        clusters={one["key"]: one["scenarios"] for view in views for one in view["clusters"]},
        faults=faults,
        others=[] if run is None or not others else _compared(cells, run, others),
    )


def _compared(cells: Grid, run: Run, others: Sequence[Run]) -> list[Beside]:
    """Return other runs by letter, over what they share with `run`, which is B."""
    held = final_groups(run).keys() & {row.id for row in cells.inside}
    return beside(run, dict(zip(LETTERS[0] + LETTERS[2:], others, strict=False)), held)


def agents_layout(runs: Mapping[str, Run], order: Sequence[str], links: Mapping[str, str]) -> Layout | None:
    """Return what the page of several agents is made of, by their names; None without any final sweep.

    It has the scenarios in `order`, the ids of all that an agent tried in its final sweep; `links` lead to
    the pages of the agents' runs.
    """
    own = next((name for name, run in runs.items() if sweeps_of(run).after is not None), None)
    if own is None:
        return None
    known = {s.id: s for run in reversed([*runs.values()]) for s in run.scenarios}
    whole = replace(final_alone(runs[own], ()), scenarios=tuple(known[id_] for id_ in order))
    cells = grid_of_run(whole, whole.phases[0].phase.label)
    if len(cells.rows) > choice.ROWS:
        cells = replace(cells, held=choice.ROWS)
    held = {row.id for row in cells.inside}
    return Layout(
        run_id=runs[own].run_id,
        actor="",
        run=whole,
        cells=cells,
        name=own,
        place=list(runs).index(own),
        others=beside(whole, {name: run for name, run in runs.items() if name != own}, held),
        links=links,
        alone=True,
    )
