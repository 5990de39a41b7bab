"""The grid of a page: the results of every scenario in each sweep and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_tfgrpo.core.records import Group, Mode, Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.text import label
from pytest_tfgrpo.harness.metrics.epochs import solved


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One sweep or epoch."""

    label: str
    """As in item ids: ``baseline``, ``epoch1``, ``epoch1-dev2``, ``epoch3-eval``."""
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

    def change(self, first: int | None, last: int | None) -> float | None:
        """Return the difference between two columns; None without both."""
        if first is None or last is None or first == last:
            return None
        before, after = self.cells[first], self.cells[last]
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

    def telling(self, limit: int) -> list[ScenarioRow]:
        """Return at most `limit` rows, those that changed most first, and of equal changes losses first."""

        def order(row: ScenarioRow) -> tuple[float, float]:
            change = row.change(self.first, self.last)
            return (1.0, 0.0) if change is None else (-abs(change), change)

        return sorted(self.rows, key=order)[:limit]


def grid(report: Report, run: Run | None) -> Grid:
    """Return the grid of a report, with the groups of its run where that is at hand."""
    columns = tuple(_of_run(run)) if run is not None else tuple(_of_report(report))
    rows = tuple(_rows_of_run(run, columns) if run is not None else _rows_of_report(report, columns))
    baseline = [i for i, column in enumerate(columns) if column.mode == "baseline"]
    final = [i for i, column in enumerate(columns) if column.mode == "eval"]
    return Grid(
        columns=columns,
        rows=rows,
        first=baseline[0] if baseline else None,
        last=final[-1] if final else None,
    )


def _of_run(run: Run) -> Iterator[Column]:
    for result in run.phases:
        groups = {group.scenario_id: group for group in result.counted}
        yield Column(label=result.phase.label, mode=result.phase.mode, groups=groups)
        sweeps: dict[str, dict[str, Group]] = {}
        for group in result.dev:
            place = group.group_id.removeprefix(f"{run.run_id}.").partition(".")[0]
            sweeps.setdefault(place.rpartition("d")[2], {})[group.scenario_id] = group
        for sweep in sorted(sweeps, key=lambda n: (len(n), n)):
            yield Column(label=f"{result.phase.label}-dev{sweep}", mode="dev", groups=sweeps[sweep])


def _of_report(report: Report) -> Iterator[Column]:
    for row in report["epochs"]:
        yield Column(label=label(row), mode=row["mode"], groups={})


def _rows_of_run(run: Run, columns: tuple[Column, ...]) -> Iterator[ScenarioRow]:
    for s in run.scenarios:
        cells = tuple(_cell(column.groups.get(s.id)) for column in columns)
        yield ScenarioRow(id=s.id, domain=s.domain, split=s.split, source=s.source, cells=cells)


def _cell(group: Group | None) -> Cell | None:
    if group is None:
        return None
    n = sum(score.gt_score is not None for score in group.scores)
    return Cell(mean=group.gt_mean, n=n, errors=len(group.scores) - n, solved=solved(group))


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
