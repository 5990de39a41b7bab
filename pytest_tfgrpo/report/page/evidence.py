"""Evidence of lessons for a page: the groups that each came from, and the scenarios that it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from pytest_tfgrpo.core.lessons import Experience, Operation
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.acceptance import lessons_of
from pytest_tfgrpo.report.page.grid import Grid

NAMED = 4
"""Groups that the library names of those that a lesson came from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonEvidence:
    """What a lesson came from, and what it reaches."""

    groups: tuple[tuple[int, int], ...]
    """Row and column of the groups of this run that it came from, those of its parents last."""
    earlier: str
    """Id of the run that it was learned in, if that is another one; else empty."""
    rows: tuple[int, ...]
    """Rows of the scenarios whose prompts in the final sweep carry it."""
    before: float | None
    """Mean over these scenarios in the baseline sweep; None unless both sweeps have results of one."""
    after: float | None
    """The same in the final sweep."""

    @property
    def change(self) -> float | None:
        """What the mean of these scenarios changed by: the work of all lessons together."""
        return None if self.before is None or self.after is None else self.after - self.before


def evidence(grid: Grid, run: Run) -> dict[str, LessonEvidence]:
    """Return the evidence of every lesson of the run, also of those that were refused, by id."""
    proposed = (operation.experience for operation in _operations(run))
    known = {lesson.id: lesson for lesson in (*proposed, *lessons_of(run)) if lesson is not None}
    if not known:
        return {}
    sources = _sources(run, known)
    wanted = {group for groups in sources.values() for group in groups}
    teaching = {scenario_in(group) for group in wanted}
    places = {
        group.group_id: (row, column)
        for row, scenario in enumerate(grid.rows)
        if scenario.id in teaching
        for column, phase in enumerate(grid.columns)
        if (group := phase.groups.get(scenario.id)) is not None and group.group_id in wanted
    }
    carrying = _carrying(grid)
    found = {}
    for id_, lesson in known.items():
        rows = tuple(carrying.get(id_, ()))
        before, after = _means(grid, rows)
        found[id_] = LessonEvidence(
            groups=tuple(places[group] for group in sources[id_] if group in places),
            earlier="" if lesson.run_id == run.run_id else lesson.run_id,
            rows=rows,
            before=before,
            after=after,
        )
    return found


def _sources(run: Run, known: Mapping[str, Experience]) -> dict[str, list[str]]:
    """Return the ids of the groups that each lesson rests on, those of the lessons before it last."""
    own: dict[str, dict[str, None]] = {id_: {} for id_ in known}
    for operation in _operations(run):
        if operation.experience is not None and operation.experience.id in own:
            own[operation.experience.id].update(dict.fromkeys(operation.groups))
    for id_, lesson in known.items():
        own[id_] = own[id_] or {lesson.group_id: None}
    found = {}
    for id_ in known:
        line, groups = [id_], dict[str, None]()
        for one in line:  # it grows by the parents of each
            groups.update(own.get(one, {}))
            line += [parent for parent in known[one].parents if parent in known and parent not in line]
        found[id_] = list(groups)
    return found


def scenario_in(group_id: str) -> str:
    """Return the id of the scenario in that of a group, ``<run id>.e<epoch>.<scenario>``."""
    return group_id.split(".", 2)[-1]


def taught(run: Run) -> Iterator[str]:
    """Yield the scenarios of the first groups that taught each lesson of a run, which its page names."""
    for operation in _operations(run):
        yield from map(scenario_in, operation.groups[:NAMED])


def _operations(run: Run) -> Iterator[Operation]:
    for result in run.phases:
        if (revision := result.revision) is not None:
            yield from revision.applied
            yield from (refusal.operation for refusal in revision.refused)
            yield from revision.acceptance.rejected if revision.acceptance is not None else ()


def _carrying(grid: Grid) -> dict[str, list[int]]:
    """Return the rows whose prompts in the final sweep carry each lesson, by its id."""
    found: dict[str, list[int]] = {}
    if grid.last is None:
        return found
    groups = grid.columns[grid.last].groups
    for row, scenario in enumerate(grid.rows):
        group = groups.get(scenario.id)
        for id_ in {id_ for rollout in group.rollouts for id_ in rollout.experiences} if group else ():
            found.setdefault(id_, []).append(row)
    return found


def _means(grid: Grid, rows: Sequence[int]) -> tuple[float | None, float | None]:
    """Return the means in the baseline and the final sweep over the rows with results in both."""
    if grid.first is None or grid.last is None:
        return None, None
    cells = [(grid.rows[row].cells[grid.first], grid.rows[row].cells[grid.last]) for row in rows]
    pairs = [(a.mean, b.mean) for a, b in cells if a is not None and b is not None]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None, None
    return fsum(a for a, _ in known) / len(known), fsum(b for _, b in known) / len(known)
