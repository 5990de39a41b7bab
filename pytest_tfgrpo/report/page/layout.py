"""What a page is made of: the grid, the rows that it holds, the evidence of lessons, and other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.report.comparison import compare_columns
from pytest_tfgrpo.report.page import choice, figures
from pytest_tfgrpo.report.page.beside import Beside, beside
from pytest_tfgrpo.report.page.evidence import LessonEvidence, evidence
from pytest_tfgrpo.report.page.grid import Grid, grid


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A report with all that its page and the file beside this take from the run; read from it once."""

    report: Report
    run: Run | None
    cells: Grid
    evidence: Mapping[str, LessonEvidence]
    faults: list[dict[str, Any]]
    others: list[Beside]
    """Runs that it is compared with, over the scenarios that the page holds."""


def layout(
    report: Report,
    run: Run | None = None,
    compare: Mapping[str, Any] | None = None,
    others: Sequence[Run] = (),
) -> Layout:
    """Return what the page of a report is made of."""
    cells, faults = grid(report, run), figures.faults(report, run)
    if len(cells.rows) > choice.ROWS:
        differ = [row["scenario"] for row in compare_columns.changed(compare)] if compare else []
        cells = choice.chosen(cells, choice.ROWS, [*choice.linked(report, run, faults), *differ])
    held = {row.id for row in cells.inside}
    return Layout(
        report=report,
        run=run,
        cells=cells,
        evidence={} if run is None else evidence(cells, run),
        faults=faults,
        others=[] if run is None else beside(report, run, others, held),
    )
