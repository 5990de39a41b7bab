"""Other runs on the page of a run: the answers of their final sweeps, to be set beside its own."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.report.page.grid import Grid, grid_of_run
from pytest_tfgrpo.report.page.previews import ANSWER, Preview, previews, worst
from pytest_tfgrpo.report.page.trajectories import Packed, pack
from pytest_tfgrpo.runs.journal.stored_groups import by_scenario
from pytest_tfgrpo.suite.families import sweeps_of

BEFORE = 16
"""Characters of what answers have in common that are shown before they part."""
FURTHEST = 4_000
"""Characters of an answer in which that place is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """The final sweep of another run, as far as its scenarios are in the run of the page."""

    name: str
    """A letter, or the name of an agent."""
    run: Run
    grid: Grid
    """One column."""
    chosen: Mapping[str, tuple[int, int]]
    """By scenario the two rollouts that are shown first: their places in this run's group and the page's.

    The latter is -1 where the run of the page has no group of the scenario.
    """


def beside(run: Run, others: Mapping[str, Run], held: Container[str]) -> list[Beside]:
    """Return other runs beside `run` by their names, over the scenarios whose ids are in `held`."""
    ours, found = final_groups(run), []
    for name, other in others.items():
        theirs = final_groups(other)
        groups = {id_: theirs[id_] for id_ in theirs if id_ in held}
        alone = final_alone(other, groups.keys())
        label = alone.phases[0].phase.label if alone.phases else None
        found.append(
            Beside(
                name=name,
                run=other,
                grid=grid_of_run(alone, label),
                chosen={
                    id_: telling_pair(group, ours[id_]) if id_ in ours else (_place_of_worst(group), -1)
                    for id_, group in groups.items()
                },
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
            ids.add(groups[id_].rollouts[theirs].rollout_id)
            if ours >= 0:
                ids.add(own[id_].rollouts[ours].rollout_id)
    return ids


def final_groups(run: Run) -> Mapping[str, Group]:
    """Return the groups of a run's final sweep by scenario; empty where it has none."""
    result = sweeps_of(run).after
    return {} if result is None else by_scenario(result.groups)


def final_alone(run: Run, only: Container[str]) -> Run:
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


def _place_of_worst(group: Group) -> int:
    return group.rollouts.index(worst(group)[0]) if group.rollouts else 0


def _extreme(group: Group, *, best: bool) -> int:
    """Return the place of the first rollout with the best or the worst score."""
    known = [(score.gt_score, i) for i, score in enumerate(group.scores) if score.gt_score is not None]
    if best:
        return max(known, key=lambda one: (one[0], -one[1]))[1]
    return min(known)[1]


def words_beside(
    own: Sequence[Preview], cells: Grid, run: Run, others: Sequence[Beside]
) -> tuple[list[Preview], dict[str, list[str]]]:
    """Return what rows say, and by kind of text and the place of the run what the others say to each.

    Where answers begin alike, each starts shortly before they part.
    """
    if not others:
        return list(own), {}
    found = [said_by(other) for other in others]
    every = [final_groups(one) for one in (run, *(other.run for other in others))]
    first: list[Preview] = []
    rest: dict[str, list[str]] = {
        f"{kind}-{n}": [] for n in range(len(others)) for kind in ("answer", "failed")
    }
    for row, preview in zip(cells.inside, own, strict=True):
        answers = parting([_shown(groups.get(row.id)) for groups in every])
        first.append(replace(preview, answer=answers[0]))
        for n, said in enumerate(found):
            rest[f"answer-{n}"].append(answers[n + 1])
            rest[f"failed-{n}"].append(said[row.id].failed if row.id in said else "")
    return first, rest


def _shown(group: Group | None) -> str:
    """Return the answer that a table shows."""
    return worst(group)[0].answer if group is not None and group.rollouts else ""


def parting(answers: Sequence[str]) -> list[str]:
    """Return a line of each answer; those that begin alike start shortly before they part."""
    lines = [line(answer, FURTHEST) for answer in answers]
    told = {text for text in lines if text}
    letters = enumerate(zip(*told, strict=False))
    alike = next((n for n, every in letters if len(set(every)) > 1), min(map(len, told), default=0))
    start = 0
    if len(told) > 1 and alike > 2 * BEFORE:
        start = next(iter(told)).rfind(" ", 0, alike - BEFORE) + 1
    return [line(("... " if start and text else "") + text[start:], ANSWER) for text in lines]


def said_by(other: Beside) -> dict[str, Preview]:
    """Return what another run says, by scenario."""
    found = previews(other.grid, other.run)
    return {row.id: preview for row, preview in zip(other.grid.rows, found, strict=True)}


def pack_beside(others: Sequence[Beside], room: int, kept: Container[str]) -> list[Packed]:
    """Return the trajectories of other runs, each in at most the share of `room` that each run has."""
    share = room // (len(others) + 1)
    return [pack(other.grid, other.run, share, kept) for other in others]
