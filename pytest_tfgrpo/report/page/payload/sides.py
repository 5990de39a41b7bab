"""What the scripts of a page read of the runs that stand beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.page.beside import final_groups
from pytest_tfgrpo.report.page.grid import Cell, Grid
from pytest_tfgrpo.report.page.previews import worst
from pytest_tfgrpo.report.page.trajectories import Packed
from pytest_tfgrpo.suite.families import sweeps_of

if TYPE_CHECKING:
    from pytest_tfgrpo.report.page.layout import Layout


def sides_index(laid: Layout, run: Run, packed: Sequence[Packed], chunks: int) -> Json:
    """Return what the page needs of other runs when it opens; so many `chunks` come before theirs.

    A row is the number of a scenario and a cell for each run, 0 where it took no part: mean, scored rollouts,
    errors, solved rollouts, chunk, place in it, whether the task is the same, and the two rollouts to show
    first. `answers` are the rows whose answers differ.
    """
    others = laid.others
    stamps = {s.id: s.stamp for s in run.scenarios}
    runs, cells = [], []
    for other, one in zip(others, packed, strict=True):
        runs.append(
            {
                "name": other.name,
                "link": laid.links.get(other.name, ""),
                "asked": _asked(other.run),
                "left_out": dict(one.left_out),
            }
        )
        theirs = {s.id: s.stamp for s in other.run.scenarios}
        cells.append(
            {
                row.id: [
                    *_figures(row.cells[0]),
                    chunks + one.chunk_of[place, 0] if (place, 0) in one.chunk_of else -1,
                    place,
                    int(stamps[row.id] == theirs[row.id]),
                    *other.chosen[row.id],
                ]
                for place, row in enumerate(other.grid.rows)
            }
        )
        chunks += len(one.chunks)
    rows = [[n, *(by_id.get(row.id, 0) for by_id in cells)] for n, row in enumerate(laid.cells.inside)]
    return {
        "name": laid.name,
        "link": laid.links.get(laid.name, ""),
        "place": laid.place,
        "alone": laid.alone,
        "asked": _asked(run),
        "runs": runs,
        "rows": [row for row in rows if laid.alone or any(row[1:])],
        "answers": _differing(laid.cells, [run, *(other.run for other in others)]),
    }


def _differing(own: Grid, runs: Sequence[Run]) -> list[int]:
    """Return the rows in which the answers that the table shows are not all the same, but for spaces."""
    every = [final_groups(run) for run in runs]
    found = []
    for n, row in enumerate(own.inside):
        groups = [groups[row.id] for groups in every if row.id in groups]
        if len({" ".join(worst(group)[0].answer.split()) for group in groups if group.rollouts}) > 1:
            found.append(n)
    return found


def _asked(run: Run) -> str:
    """Return what the ids of a run's rollouts in its final sweep begin with."""
    result = sweeps_of(run).after
    return run.run_id if result is None else f"{run.run_id}.e{result.phase.epoch}"


def _figures(cell: Cell | None) -> list[Json]:
    if cell is None:
        return [None, 0, 0, 0]
    return [None if cell.mean is None else round(cell.mean, 4), cell.n, cell.errors, cell.solved]
