"""Other runs on the page of a run: the answers of their final sweeps, to be set beside its own."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.comparison.compare_columns import LETTERS
from pytest_tfgrpo.report.page.grid import Cell, Grid, grid
from pytest_tfgrpo.report.page.previews import previews
from pytest_tfgrpo.report.page.trajectories import Packed, pack
from pytest_tfgrpo.runs.journal.stored_groups import by_scenario
from pytest_tfgrpo.suite.families import sweeps_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """The final sweep of another run, as far as its scenarios are in the run of the page."""

    letter: str
    run: Run
    grid: Grid
    """One column."""
    chosen: Mapping[str, tuple[int, int]]
    """By scenario the two rollouts that are shown first: their places in this run's group and the page's."""


def beside(report: Report, run: Run, others: Sequence[Run], held: Container[str]) -> list[Beside]:
    """Return other runs by letter: the first is A, `run` itself, of this `report`, is B.

    Only scenarios whose ids are in `held` are compared.
    """
    if not others:
        return []
    ours = final_groups(run)
    own = {id_: ours[id_] for id_ in ours if id_ in held}
    found = []
    for letter, other in zip(LETTERS[0] + LETTERS[2:], others, strict=False):
        theirs = final_groups(other)
        groups = {id_: theirs[id_] for id_ in theirs if id_ in own}
        found.append(
            Beside(
                letter=letter,
                run=other,
                grid=grid(report, _final_alone(other, groups.keys())),
                chosen={id_: telling_pair(group, own[id_]) for id_, group in groups.items()},
            )
        )
    return found


def shown_first(others: Sequence[Beside], run: Run) -> set[str]:
    """Return the ids of the rollouts that stand side by side at first: a small page leaves them out last."""
    ids = set[str]()
    if not others:
        return ids
    own = final_groups(run)
    for other in others:
        groups = final_groups(other.run)
        for id_, (theirs, ours) in other.chosen.items():
            ids |= {groups[id_].rollouts[theirs].rollout_id, own[id_].rollouts[ours].rollout_id}
    return ids


def final_groups(run: Run) -> Mapping[str, Group]:
    """Return the groups of a run's final sweep by scenario; empty where it has none."""
    result = sweeps_of(run).after
    return {} if result is None else by_scenario(result.groups)


def _final_alone(run: Run, only: Container[str]) -> Run:
    """Return a run as if there was but its final sweep, over the scenarios of `only`."""
    result = sweeps_of(run).after
    phases = () if result is None else (replace(result, dev=()),)
    return replace(run, phases=phases, scenarios=tuple(s for s in run.scenarios if s.id in only))


def telling_pair(other: Group, own: Group) -> tuple[int, int]:
    """Return the places of the rollouts of two groups that show best how these differ.

    That is the best of the group with the higher mean, and the worst of the other one; where the means are
    equal, the first two of one place whose answers differ.
    """
    if other.gt_mean is None or own.gt_mean is None or other.gt_mean == own.gt_mean:
        pairs = zip(other.rollouts, own.rollouts, strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a.answer != b.answer), 0)
        return place, place
    if other.gt_mean > own.gt_mean:
        return _extreme(other, best=True), _extreme(own, best=False)
    return _extreme(other, best=False), _extreme(own, best=True)


def _extreme(group: Group, *, best: bool) -> int:
    """Return the place of the first rollout with the best or the worst score."""
    known = [(score.gt_score, i) for i, score in enumerate(group.scores) if score.gt_score is not None]
    if best:
        return max(known, key=lambda one: (one[0], -one[1]))[1]
    return min(known)[1]


def answers_beside(own: Grid, others: Sequence[Beside]) -> dict[str, list[str]]:
    """Return an answer of each other run to each scenario, by the key of its column: as a preview has it."""
    found = {}
    for other in others:
        said = previews(other.grid, other.run)
        by_id = {row.id: preview.answer for row, preview in zip(other.grid.rows, said, strict=True)}
        found[f"answer-{other.letter}"] = [by_id.get(row.id, "") for row in own.inside]
    return found


def pack_beside(others: Sequence[Beside], room: int, kept: Container[str]) -> list[Packed]:
    """Return the trajectories of other runs, each in at most the share of `room` that each run has."""
    share = room // (len(others) + 1)
    return [pack(other.grid, other.run, share, kept) for other in others]


def beside_index(
    own: Grid, run: Run, others: Sequence[Beside], packed: Sequence[Packed], chunks: int
) -> Json:
    """Return what the page needs of other runs when it opens; so many `chunks` come before theirs.

    A row is the number of a scenario and a cell for each run, 0 where it took no part: mean, scored rollouts,
    errors, chunk, place in it, whether the task is the same, and the two rollouts to show first.
    """
    stamps = {s.id: s.stamp for s in run.scenarios}
    runs, cells = [], []
    for other, one in zip(others, packed, strict=True):
        runs.append({"letter": other.letter, "asked": _asked(other.run), "left_out": dict(one.left_out)})
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
    rows = [[n, *(by_id.get(row.id, 0) for by_id in cells)] for n, row in enumerate(own.inside)]
    return {"asked": _asked(run), "runs": runs, "rows": [row for row in rows if any(row[1:])]}


def _asked(run: Run) -> str:
    """Return what the ids of a run's rollouts in its final sweep begin with."""
    result = sweeps_of(run).after
    return run.run_id if result is None else f"{run.run_id}.e{result.phase.epoch}"


def _figures(cell: Cell | None) -> list[Json]:
    if cell is None:
        return [None, 0, 0]
    return [None if cell.mean is None else round(cell.mean, 4), cell.n, cell.errors]
