"""The command ``tfgrpo show``: one rollout in full, or a list of those of a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from pytest_tfgrpo.cli.lookup import FoundRollout, find_rollout, find_scenario
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.texts.text import line, number, plural, table
from pytest_tfgrpo.report.rollout import rollout_text

ROLLOUT = re.compile(r"\.r\d+$")
"""How the id of a rollout ends."""
WIDTH = 80


def show(arguments: Arguments) -> Iterator[str]:
    """Print a rollout in full, with every frame, check and score, or list those of a scenario."""
    project, wanted = project_of(arguments), arguments.rollout
    if ROLLOUT.search(wanted) is None and (rows := find_scenario(project, wanted)):
        yield from _listed(wanted, rows)
        return
    found = find_rollout(project, wanted)
    if found.shared:
        yield (
            f"{found.shared} was not asked: its prompt is that of the final sweep, whose answer serves both"
        )
    yield rollout_text(found.rollout, found.score, found.scenario)


def _listed(scenario: str, rows: Sequence[FoundRollout]) -> Iterator[str]:
    """Yield the rollouts of a scenario in one run, and the command that shows the worst of the last sweep."""
    yield f"{line(scenario)}: {plural(len(rows), 'rollout')} in run {line(rows[0].rollout.run_id)}"
    cells = [(_short(row), row.rollout.status, number(_score(row))) for row in rows]
    head = ("rollout", "status", "score")
    room = WIDTH - sum(max(map(len, column)) + 2 for column in zip(head, *cells, strict=True))
    yield from table(
        [*head, "why"],
        [[*known, line(_why(row), max(room, 20))] for known, row in zip(cells, rows, strict=True)],
        left=2,
    )
    last = max(row.rollout.epoch for row in rows)
    worst = min((row for row in rows if row.rollout.epoch == last), key=lambda row: _score(row) or 0.0)
    yield f"next: tfgrpo show {quote(_short(worst))}"


def _short(row: FoundRollout) -> str:
    """Return the id of a rollout without that of its run."""
    return row.rollout.rollout_id.removeprefix(f"{row.rollout.run_id}.")


def _score(row: FoundRollout) -> float | None:
    return None if row.score is None else row.score.gt_score


def _why(row: FoundRollout) -> str:
    """Return what went wrong first; empty where nothing did."""
    if (failure := row.rollout.failure) is not None:
        return f"{failure.code}: {failure.message}"
    return next((f"{check.kind}: {check.reason}" for check in row.rollout.checks if check.credit < 1), "")
