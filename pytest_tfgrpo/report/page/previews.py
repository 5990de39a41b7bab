"""What a row of the scenario table says in words: the task, what is expected, an answer, what failed."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.page.grid import Grid, ScenarioRow
from pytest_tfgrpo.report.page.trajectories import told_params

TASK, EXPECTED, ANSWER, FAILED = 240, 160, 200, 200
"""Characters of each text in a row; the scenario itself, one click away, shows all of it."""
CHECKS = 3
"""Checks of which a row shows what they expect."""
_VALUE_ALONE = ("exact", "number", "math")
"""Kinds that compare the whole answer with a value, which then says all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """One scenario in words."""

    task: str
    expected: str
    answer: str = ""
    """Of its worst rollout at the end, of equals the first."""
    failed: str = ""
    """First check that this rollout did not pass, or how it failed; empty if it passed."""
    rollout: int = -1
    """Place of this rollout in its group; -1 if there is none."""


def previews(grid: Grid, run: Run) -> list[Preview]:
    """Return what each row inside the page says, in the order of the rows."""
    wanted = {row.id for row in grid.inside}
    scenarios = {scenario.id: scenario for scenario in run.scenarios if scenario.id in wanted}
    return [preview(row, grid, scenarios[row.id]) for row in grid.inside]


def preview(row: ScenarioRow, grid: Grid, scenario: Scenario) -> Preview:
    """Return what a row says."""
    task, expects = task_text(scenario), line(expected(scenario), EXPECTED)
    group = None if row.end is None else grid.columns[row.end].groups.get(row.id)
    if group is None or not group.rollouts:
        return Preview(task=task, expected=expects)
    rollout, score = worst(group)
    return Preview(
        task=task,
        expected=expects,
        answer=line(rollout.answer, ANSWER),
        failed=line(_fault(rollout, score), FAILED),
        rollout=rollout.index,
    )


def task_text(scenario: Scenario) -> str:
    """Return the start of a task as a line: of its prompt, all that the user says and wants, or its data."""
    wanted = [] if scenario.user is None else [f"(a model plays the user: {scenario.user.goal})"]
    said = scenario.turns or [scenario.prompt or _flat(scenario.input)]
    return line(" / ".join([*said, *wanted]), TASK)


def worst(group: Group) -> tuple[Rollout, Score]:
    """Return the rollout with the lowest gt_score, of equals the first; an error only where all are."""

    def order(found: tuple[Rollout, Score]) -> tuple[float, int]:
        rollout, score = found
        return (2.0 if score.gt_score is None else score.gt_score), rollout.index

    return min(zip(group.rollouts, group.scores, strict=True), key=order)


def expected(scenario: Scenario) -> str:
    """Return what a scenario's checks expect, in a few words."""
    checks = [_expects(check) for check in scenario.checks[:CHECKS]]
    if len(scenario.checks) > CHECKS:
        checks.append(f"and {len(scenario.checks) - CHECKS} more")
    if checks:
        return "; ".join(checks)
    if scenario.rubric:
        return "; ".join(criterion.text for criterion in scenario.rubric)
    if scenario.checker:
        return f"{scenario.checker.rpartition('::')[2]} passes"
    return f"what the {scenario.truth} says" if scenario.truth != "checks" else ""


def _expects(check: Check) -> str:
    value = check.params.get("value")
    if check.kind in _VALUE_ALONE and not check.negated and value is not None:
        return _flat(value)
    return f"{check.title} {', '.join(_flat(value) for value in told_params(check).values())}".rstrip()


def _flat(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_flat, value))
    return "" if value is None else str(value)


def _fault(rollout: Rollout, score: Score) -> str:
    if rollout.failure is not None:
        return f"{rollout.failure.code}: {rollout.failure.message}"
    missed = [check for check in rollout.checks if not check.passed]
    if missed:
        more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
        return f"{missed[0].kind}: {missed[0].reason or 'not passed'}{more}"
    return "" if score.gt_score is None or score.gt_score >= 1 else "a rewarder scored below 1"
