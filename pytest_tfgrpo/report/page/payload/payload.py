"""What the scripts of a page read: an index in plain JSON, and the trajectories in compressed chunks."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.report.acceptance import lessons_of
from pytest_tfgrpo.report.page.grid import Cell, Grid
from pytest_tfgrpo.report.page.previews import Preview
from pytest_tfgrpo.report.page.trajectories import Packed, compressed

if TYPE_CHECKING:
    from pytest_tfgrpo.report.page.layout import Layout

SHARD = 1_000
"""Rows in one part of the file beside a page."""


def index(laid: Layout, packed: Packed, beyond: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what a page needs when it opens: columns, rows with their cells, lessons, what was left out.

    `beyond` says what of the scenarios that the page does not hold is where.
    """
    grid = laid.cells
    part = Rows(laid).part(0, grid.held, packed)
    taught, reached = part.pop("taught"), part["lessons"]
    known = (
        {}
        if laid.run is None
        else {lesson.id: lesson for lesson in lessons_of(laid.run) if lesson.id in taught}
    )
    value = {
        "run": laid.run_id,
        "actor": redact(laid.actor),
        "columns": [
            {"label": column.label, "name": column.name, "mode": column.mode} for column in grid.columns
        ],
        "last": grid.last,
        "splits": {split: grid.columns_of(split) for split in grid.splits()},
        "domains": domains_of(grid),
        "tags": tags_of(laid.run),
        **part,
        "lessons": {
            id_: [e.polarity, e.domain, redact(e.summary32), taught[id_], reached[id_]]
            for id_, e in known.items()
        },
        "left_out": packed.left_out,
    }
    return value if beyond is None else value | {"beyond": beyond}


def beyond(grid: Grid, run_id: str, key: str) -> dict[str, Any]:
    """Return what the page of a large run says of the scenarios that it does not hold.

    `key` names the content of the file beside the page; empty without one.
    """
    return {
        "key": key,
        "rows": len(grid.rows),
        "shard": SHARD,
        "splits": dict(Counter(row.split for row in grid.rows)),
        "command": f"tfgrpo view {line(run_id)}",
    }


class Rows:
    """The rows of a page and of the file beside it, with what they belong to."""

    def __init__(self, laid: Layout) -> None:
        grid, run = laid.cells, laid.run
        self._grid = grid
        place = {row.id: n for n, row in enumerate(grid.rows)}
        self._domain = {domain: n for n, domain in enumerate(domains_of(grid))}
        scenarios = () if run is None else run.scenarios
        self._checkers = {s.id: s.checker for s in scenarios if s.checker}
        tags = {tag: n for n, tag in enumerate(tags_of(run))}
        self._tagged = {s.id: [tags[tag] for tag in dict.fromkeys(s.tags)] for s in scenarios if s.tags}
        self._flaky = laid.flaky
        self._taught = {id_: sorted(found.groups) for id_, found in laid.evidence.items()}
        self._lessons = {id_: found.rows for id_, found in laid.evidence.items()}
        self._clusters = {key: sorted(place[id_] for id_ in ids) for key, ids in laid.clusters.items()}

    def part(self, start: int, stop: int, packed: Packed) -> dict[str, Any]:
        """Return the rows from `start` to before `stop`, and what belongs to them."""
        grid, ids = self._grid, [row.id for row in self._grid.rows[start:stop]]
        return {
            "rows": [
                [
                    *(row.id, self._domain[row.domain], row.split, row.source, row.start, row.end),
                    *_cells(grid, n, packed),
                ]
                for n, row in enumerate(grid.rows[start:stop], start)
            ],
            "checkers": {id_: self._checkers[id_] for id_ in ids if id_ in self._checkers},
            "tagged": {id_: self._tagged[id_] for id_ in ids if id_ in self._tagged},
            "flaky": sorted(id_ for id_ in ids if id_ in self._flaky),
            "taught": {
                id_: groups[bisect_left(groups, (start,)) : bisect_left(groups, (stop,))]
                for id_, groups in self._taught.items()
            },
            "lessons": {id_: _within(rows, start, stop) for id_, rows in self._lessons.items()},
            "clusters": {key: _within(rows, start, stop) for key, rows in self._clusters.items()},
        }


def _within(rows: Sequence[int], start: int, stop: int) -> Sequence[int]:
    """Return those of ascending numbers that are from `start` to before `stop`."""
    return rows[bisect_left(rows, start) : bisect_left(rows, stop)]


def domains_of(grid: Grid) -> list[str]:
    """Return the domains, in the order in which rows number them."""
    return sorted({row.domain for row in grid.rows})


def tags_of(run: Run | None) -> list[str]:
    """Return the tags of a run's scenarios, in the order in which rows number them."""
    return [] if run is None else sorted({tag for s in run.scenarios for tag in s.tags})


def _cells(grid: Grid, row: int, packed: Packed) -> Iterator[list[Any] | int]:
    """Yield mean, scored rollouts, errors, solved rollouts and chunk; 0 where a scenario took no part."""
    for column, cell in enumerate(grid.rows[row].cells):
        yield 0 if cell is None else _cell(cell, packed.chunk_of.get((row, column), -1))


def _cell(cell: Cell, chunk: int) -> list[Any]:
    mean = None if cell.mean is None else round(cell.mean, 4)
    return [mean, cell.n, cell.errors, cell.solved, chunk]


def words(found: Sequence[Preview], more: Mapping[str, Sequence[str]]) -> str:
    """Return what rows say in words, and `more`, by kind of text and in the order of the rows, compressed."""
    rows = [asdict(preview) for preview in found]
    return compressed(json.dumps({key: [row[key] for row in rows] for key in rows[0]} | dict(more)))


def script_json(value: Any) -> str:
    """Return JSON that is safe in a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
