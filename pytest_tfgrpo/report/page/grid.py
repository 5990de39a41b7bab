"""The grid of a page: the results of every scenario in each sweep and epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Mode, Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import label
from pytest_tfgrpo.metrics.passes import solved
from pytest_tfgrpo.runs.journal.stored_groups import by_scenario

SPLITS = ("eval", "train", "dev")
"""In the order in which a reader wants them."""
_LABEL = re.compile(r"epoch(\d+)(?:-(eval)|-dev(\d+)|-(evidence))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One sweep or epoch."""

    label: str
    """As in item ids: ``baseline``, ``epoch1``, ``epoch1-dev2``, ``epoch3-eval``."""
    name: str
    """For readers: ``baseline``, ``epoch 1``, ``epoch 1, dev 2``, ``final``."""
    mode: Mode
    groups: Mapping[str, Group]
    """By scenario id; empty where only the report is at hand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The result of one scenario in one column."""

    mean: float | None
    n: int
    """Rollouts scored."""
    errors: int
    solved: int | None
    """Rollouts that passed every check; None where only the report is at hand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioRow:
    """One scenario."""

    id: str
    domain: str
    split: str
    source: str
    cells: tuple[Cell | None, ...]
    """In the order of the columns; None where it took no part."""
    start: int | None = None
    """Column of its first result, for eval scenarios the baseline sweep; None without one before `end`."""
    end: int | None = None
    """Column of its last result, for eval scenarios the final sweep; None where it has none."""

    @property
    def change(self) -> float | None:
        """The mean at the end minus the mean at the start; None without both."""
        before, after = (None if i is None else self.cells[i] for i in (self.start, self.end))
        if before is None or after is None or before.mean is None or after.mean is None:
            return None
        return after.mean - before.mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """All scenarios by all sweeps and epochs."""

    columns: tuple[Column, ...]
    rows: tuple[ScenarioRow, ...]
    first: int | None
    """Column of the baseline sweep."""
    last: int | None
    """Column of the final sweep."""
    held: int
    """How many rows the page itself holds, the first ones; a file beside it holds all."""

    @property
    def inside(self) -> tuple[ScenarioRow, ...]:
        """The rows that the page itself holds."""
        return self.rows[: self.held]

    def splits(self) -> list[str]:
        """Return the splits that there are."""
        known = {row.split for row in self.rows}
        return [split for split in SPLITS if split in known]

    def columns_of(self, split: str) -> list[int]:
        """Return the columns in which scenarios of a split took part."""
        rows = [row for row in self.rows if row.split == split]
        return [i for i in range(len(self.columns)) if any(row.cells[i] is not None for row in rows)]

    def telling(self, split: str, limit: int) -> list[tuple[int, ScenarioRow]]:
        """Return at most `limit` rows of a split inside the page with their places, largest changes first.

        Of equal changes losses come first.
        """

        def order(found: tuple[int, ScenarioRow]) -> tuple[float, float]:
            change = found[1].change
            return (1.0, 0.0) if change is None else (-abs(change), change)

        rows = [(i, row) for i, row in enumerate(self.inside) if row.split == split]
        return sorted(rows, key=order)[:limit]


def phase_name(label: str, final: str | None) -> str:
    """Return the name for readers of the phase with a label; `final` is the label of the final sweep."""
    if label == final:
        return "final"
    found = _LABEL.fullmatch(label)
    if found is None:
        return "early baseline" if label == "early" else label
    epoch, sweep, dev, evidence = found.groups()
    if evidence:
        return f"epoch {epoch}, evidence"
    return f"after epoch {epoch}" if sweep else f"epoch {epoch}, dev {dev}" if dev else f"epoch {epoch}"


def final_label(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the label of the final sweep among the rows of a report's epochs; None without one."""
    return next((label(row) for row in reversed(rows) if row["mode"] == "eval"), None)


def grid(report: Report, run: Run | None) -> Grid:
    """Return the grid of a report, with the groups of its run where that is at hand."""
    final = final_label(report["epochs"])
    if run is not None:
        return grid_of_run(run, final)
    columns = tuple(_of_report(report, final))
    return _grid(columns, _rows_of_report(report, columns), final)


def grid_of_run(run: Run, final: str | None) -> Grid:
    """Return the grid of a run whose final sweep has the label `final`."""
    columns = tuple(_of_run(run, final))
    return _grid(columns, _rows_of_run(run, columns), final)


def _grid(columns: tuple[Column, ...], found: Iterator[ScenarioRow], final: str | None) -> Grid:
    first = next((i for i, column in enumerate(columns) if column.mode == "baseline"), None)
    last = next((i for i, column in enumerate(columns) if column.label == final), None)
    rows = tuple(_with_ends(row, first, last) for row in found)
    return Grid(columns=columns, rows=rows, first=first, last=last, held=len(rows))


def _with_ends(row: ScenarioRow, first: int | None, last: int | None) -> ScenarioRow:
    seen = [i for i, cell in enumerate(row.cells) if cell is not None]
    if not seen:
        return row
    end = last if last in seen else seen[-1]
    start = first if first in seen else None if row.split == "eval" else seen[0]
    return replace(row, start=None if start == end else start, end=end)


def _of_run(run: Run, final: str | None) -> Iterator[Column]:
    for result in run.phases:
        yield _column(result.phase.label, result.phase.mode, final, by_scenario(result.counted))
        sweeps: dict[str, dict[str, Group]] = {}
        for group in result.dev:
            place = group.group_id.removeprefix(f"{run.run_id}.").partition(".")[0]
            sweeps.setdefault(place.rpartition("d")[2], {})[group.scenario_id] = group
        for sweep in sorted(sweeps, key=lambda n: (len(n), n)):
            yield _column(f"{result.phase.label}-dev{sweep}", "dev", final, sweeps[sweep])


def _of_report(report: Report, final: str | None) -> Iterator[Column]:
    for row in report["epochs"]:
        yield _column(label(row), row["mode"], final, {})


def _column(label: str, mode: Mode, final: str | None, groups: Mapping[str, Group]) -> Column:
    return Column(label=label, name=phase_name(label, final), mode=mode, groups=groups)


def _rows_of_run(run: Run, columns: tuple[Column, ...]) -> Iterator[ScenarioRow]:
    known: dict[Cell, Cell] = {}  # a long run has few that differ
    for s in run.scenarios:
        found = (_cell(column.groups.get(s.id)) for column in columns)
        cells = tuple(None if cell is None else known.setdefault(cell, cell) for cell in found)
        yield ScenarioRow(id=s.id, domain=s.domain, split=s.split, source=s.source, cells=cells)


def _cell(group: Group | None) -> Cell | None:
    if group is None:
        return None
    n = sum(score.gt_score is not None for score in group.scores)
    return Cell(mean=group.gt_mean, n=n, errors=group.errors, solved=solved(group))


def _rows_of_report(report: Report, columns: tuple[Column, ...]) -> Iterator[ScenarioRow]:
    for scenario in report["scenarios"]:
        seen = {
            label(place): Cell(mean=place["mean"], n=place["n"], errors=place["errors"], solved=None)
            for place in scenario["epochs"]
        }
        yield ScenarioRow(
            id=scenario["id"],
            domain=scenario["domain"],
            split=scenario["split"],
            source=scenario["source"],
            cells=tuple(seen.get(column.label) for column in columns),
        )
