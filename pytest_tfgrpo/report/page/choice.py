"""Which scenarios of a large run its page holds: those that a reviewer looks at first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.report.page.evidence import taught
from pytest_tfgrpo.report.page.grid import Cell, Grid, ScenarioRow

ROWS = 2_000
"""Scenarios that a page holds at most; with more it needs a file beside it."""


def chosen(grid: Grid, limit: int, wanted: Iterable[str] = ()) -> Grid:
    """Return a grid whose first rows, at most `limit`, are those that the page holds.

    Up to half of them are scenarios of `wanted`, the first ones. The others come in turns from each split,
    and there from what is worth a look: largest losses, lowest scores at the end, largest gains, groups with
    mixed results; only then others. Rows inside and outside the page keep the order of the suite.
    """
    place = {row.id: n for n, row in enumerate(grid.rows)}
    found = dict.fromkeys(islice(dict.fromkeys(place[id_] for id_ in wanted if id_ in place), limit // 2))
    for n in _in_turns([_of_split(grid, split) for split in grid.splits()]):
        if len(found) >= limit:
            break
        found[n] = None
    first = sorted(found)
    rest = (row for n, row in enumerate(grid.rows) if n not in found)
    return replace(grid, rows=(*(grid.rows[n] for n in first), *rest), held=len(first))


def linked(report: Report, run: Run | None, faults: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the scenarios to which a page leads by name: in its tables and from its lessons."""
    yield from (row["scenario"] for row in report["regressions"])
    for fault in faults:
        yield from (example["scenario"] for example in fault["examples"])
    for view in report["failures"]["views"].values() if "failures" in report else ():
        yield from (cluster["example"]["scenario"] for cluster in view["clusters"])
    if run is not None:
        yield from taught(run)


def _of_split(grid: Grid, split: str) -> Iterator[int]:
    """Yield the places of all rows of a split, most telling first, each once."""
    rows = [(n, row) for n, row in enumerate(grid.rows) if row.split == split]
    telling = dict.fromkeys(_in_turns([iter(order) for order in _orders(rows)]))
    yield from telling
    yield from (n for n, _ in rows if n not in telling)


def _in_turns(orders: Sequence[Iterator[int]]) -> Iterator[int]:
    """Yield one number of each order at a time."""
    while orders:
        going = []
        for order in orders:
            if (n := next(order, None)) is not None:
                going.append(order)
                yield n
        orders = going


def _orders(rows: Sequence[tuple[int, ScenarioRow]]) -> Iterator[list[int]]:
    """Yield the places of what is worth a look, each kind with its most telling first."""
    changes = [(row.change, n) for n, row in rows]
    last = [(None if row.end is None else row.cells[row.end], n) for n, row in rows]
    ends = [(cell, n) for cell, n in last if cell is not None]
    yield [n for change, n in sorted((c, n) for c, n in changes if c is not None and c < 0)]
    yield [n for score, n in sorted((-1.0 if c.mean is None else c.mean, n) for c, n in ends if _fails(c))]
    yield [n for change, n in sorted((-c, n) for c, n in changes if c is not None and c > 0)]
    yield [n for cell, n in ends if cell.solved is not None and 0 < cell.solved < cell.n]


def _fails(cell: Cell) -> bool:
    return cell.errors > 0 or cell.mean is None or cell.mean < 1
