"""What the scripts of a page read: an index in plain JSON, and the trajectories in compressed chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.harness.report.acceptance import lessons_of
from pytest_tfgrpo.harness.report.page.grid import Cell, Grid
from pytest_tfgrpo.harness.report.page.trajectories import Packed


def index(grid: Grid, report: Report, run: Run | None, packed: Packed) -> dict[str, Any]:
    """Return what a page needs when it opens: columns, rows with their cells, lessons, what was left out."""
    domains = sorted({row.domain for row in grid.rows})
    place = {domain: i for i, domain in enumerate(domains)}
    return {
        "run": report["run_id"],
        "columns": [{"label": column.label, "mode": column.mode} for column in grid.columns],
        "first": grid.first,
        "last": grid.last,
        "domains": domains,
        "rows": [
            [row.id, place[row.domain], row.split, row.source, *_cells(grid, i, packed)]
            for i, row in enumerate(grid.rows)
        ],
        "flaky": sorted(row["scenario"] for row in report.get("flaky", ())),
        "lessons": {}
        if run is None
        else {e.id: [e.polarity, e.domain, redact(e.summary32)] for e in lessons_of(run)},
        "left_out": packed.left_out,
    }


def _cells(grid: Grid, row: int, packed: Packed) -> Iterator[list[Any] | int]:
    """Yield mean, scored rollouts, errors, solved rollouts and chunk; 0 where a scenario took no part."""
    for column, cell in enumerate(grid.rows[row].cells):
        yield 0 if cell is None else _cell(cell, packed.chunk_of.get((row, column), -1))


def _cell(cell: Cell, chunk: int) -> list[Any]:
    mean = None if cell.mean is None else round(cell.mean, 4)
    return [mean, cell.n, cell.errors, cell.solved, chunk]


def script_json(value: Any) -> str:
    """Return JSON that is safe in a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
