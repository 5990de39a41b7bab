"""``tfgrpo patterns trial``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.texts.text import plural, scenarios_of
from pytest_tfgrpo.launch.running import arun_launch
from pytest_tfgrpo.patterns.shelf.lint import FIX
from pytest_tfgrpo.patterns.shelf.moves import record_trial, trials_of
from pytest_tfgrpo.patterns.shelf.pattern import TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.trial.trial import TrialPlan, TrialRuns, run_trial, trial_scenarios
from pytest_tfgrpo.runs.journal.journal_contents import new_run_id
from pytest_tfgrpo.runs.output_folder import make_output

TRIALS = "trials"
"""In a task's output folder, a folder for each trial."""


def trial(arguments: Arguments) -> Iterator[str]:
    """Measure a pattern: your agent with it beside your agent without it, on dev scenarios."""
    project, shelf = project_of(arguments), open_shelf(arguments)
    pattern = shelf.pattern(arguments.name)
    if stamp_of(pattern) != pattern.stamp:
        raise PatternError(f"{pattern.name!r} was changed since it was screened; first review it, then {FIX}")
    if refused := PatternScreens().refusals(pattern):
        told = "; ".join(f"{fault.place}: {fault.message}" for fault in refused)
        raise PatternError(f"no agent may read {pattern.name!r}: {told}; rewrite it")
    plan = TrialPlan(
        pattern=pattern,
        root=project.root,
        settings=project.settings,
        suite=Path(arguments.suite).resolve(),
        delivery=arguments.delivery,
        rollouts=arguments.rollouts,
        looks=lambda: 1 + len(trials_of(shelf, pattern)),
        out=project.out / project.task_id / TRIALS / f"{new_run_id()}-{pattern.name}",
    )
    count = len(trial_scenarios(plan))
    yield (
        f"{pattern.name}: {plural(count, 'dev scenario')}, {plural(plan.rollouts, 'rollout')} each, with it "
        f"and without it ({'a lesson in prompts' if plan.delivery == 'prompt' else 'a skill in workspaces'})"
    )
    if (looks := plan.looks()) > 1:
        yield f"trial {looks} of this text: it helps only at a level of {0.05 / looks:.2g}"
    make_output(project.out)
    found = run_trial(plan, os.environ, arun_launch)
    if found.result.gain is None or not found.carried:
        raise PatternError(
            "no scenario was scored with the pattern and without it, and nothing is kept of this trial; "
            f"see why in {os.path.relpath(plan.out)}, then try again"
        )
    path = record_trial(shelf, pattern.name, found.result)
    yield from _lines(found)
    yield f"wrote  {path.relative_to(shelf.root)}; both runs are in {os.path.relpath(plan.out)}"


def _lines(found: TrialRuns) -> Iterator[str]:
    result = found.result
    if result.delivery == "prompt":
        yield f"the lesson was in {found.carried} of {plural(found.rollouts, 'prompt')}"
    yield f"{result.outcome}: {_difference(result)}"
    if result.why:
        yield f"why    {result.why}"
    elif result.outcome == "inconclusive" and result.needed:
        yield f"needed about {plural(result.needed, 'scenario')}, if the difference stays what it is"
    yield "cost   not known" if result.cost_usd is None else f"cost   ${result.cost_usd:.2f}"


def _difference(result: TrialResult) -> str:
    assert result.gain is not None  # nothing is said of a trial without scores
    interval = (
        f"95 % interval {result.low:+.3f} to {result.high:+.3f}"
        if result.low is not None and result.high is not None
        else "too few for an interval"
    )
    return f"difference {result.gain:+.3f}, {interval}, {scenarios_of(result.scenarios, result.families)}"
