"""A benchmark from a repository's own history: ``tfgrpo harvest`` and its commands."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.harvest.harvest_model import open_statement_model
from pytest_tfgrpo.cli.harvest.harvest_progress import HarvestScreen, estimate_line, spent
from pytest_tfgrpo.cli.harvest.sandbox_choice import require_sandbox
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import BudgetError
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.harvest.fixes import FixCandidate
from pytest_tfgrpo.harvest.job.harvest import harvest, holds_changes, preview
from pytest_tfgrpo.harvest.job.plan import HarvestPlan
from pytest_tfgrpo.harvest.job.progress import estimate_from_rows
from pytest_tfgrpo.harvest.job.tools import domain_of, open_builder, open_tools, reviewed_recipes
from pytest_tfgrpo.harvest.prompt.issues_file import read_issues
from pytest_tfgrpo.harvest.suite.harvest_log import read_log_of

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.fixes import HarvestRow
    from pytest_tfgrpo.harvest.job.plan import HarvestStep, HarvestTools
    from pytest_tfgrpo.harvest.recipe.recipe_file import FolderRecipe

STATUS_WIDTH = 21
MOST_JOBS = 64


def harvest_command(arguments: Arguments) -> Iterator[str]:
    """Make proven scenarios of the fixes in a git repository's history."""
    needed = {"--repo": arguments.repo, "--from-git": arguments.from_git, "--into": arguments.into}
    missing = [flag for flag, value in needed.items() if not value]
    if missing:
        arguments.parser.error(f"the following arguments are required: {', '.join(missing)}")
    if not 1 <= arguments.jobs <= MOST_JOBS:
        arguments.parser.error(f"--jobs must be from 1 to {MOST_JOBS}, not {arguments.jobs}")
    if arguments.limit is not None and arguments.limit < 1:
        arguments.parser.error(f"--limit must be at least 1, not {arguments.limit}")
    if arguments.budget_s is not None and not 0 < arguments.budget_s < math.inf:
        arguments.parser.error(f"--budget-s must be greater than 0, not {arguments.budget_s:g}")
    reviewed = reviewed_recipes(Path(arguments.repo))
    plan = _plan(arguments, reviewed)
    yield from _dry_run(plan) if arguments.dry_run else _with_prompts(arguments, plan, reviewed)


def _plan(arguments: Arguments, reviewed: tuple[FolderRecipe, ...]) -> HarvestPlan:
    """Return the plan of a command line; raises SettingError."""
    repository = Path(arguments.repo)
    return HarvestPlan(
        repository=repository,
        commits=arguments.from_git,
        suite=Path(arguments.into),
        domain=arguments.domain or domain_of(repository, arguments.from_git),
        each_commit=arguments.each_commit,
        paths=tuple(arguments.path),
        limit=arguments.limit,
        exclude=tuple(arguments.exclude),
        tests=tuple(glob for recipe in reviewed for glob in recipe.tests or ()),
        protected=tuple(glob for recipe in reviewed for glob in recipe.protected or ()),
        retry=arguments.retry,
        jobs=arguments.jobs,
        isolation=arguments.check_sandbox,
        budget_s=arguments.budget_s,
    )


def _with_prompts(
    arguments: Arguments, plan: HarvestPlan, reviewed: tuple[FolderRecipe, ...]
) -> Iterator[str]:
    issues = read_issues(Path(arguments.issues)) if arguments.issues else {}
    builder = open_builder(os.environ, plan.isolation)
    if arguments.statement != "model":
        yield from _harvest(plan, open_tools(reviewed, builder, issues))
        return
    with open_statement_model(arguments) as model:
        yield from _harvest(plan, open_tools(reviewed, builder, issues, model))
        if model.exhausted:
            yield f"warning: the model wrote no more prompts: {model.exhausted}"


def _harvest(plan: HarvestPlan, tools: HarvestTools) -> Iterator[str]:
    if plan.isolation == "none":
        yield "warning: the tests run without isolation; what they do, they do to this machine"
    require_sandbox(plan.isolation)
    counts: Counter[str] = Counter()
    screen = HarvestScreen(sys.stdout)
    try:
        for step in harvest(plan, tools, screen.watch):
            screen.clear()
            counts[step.row.status] += 1
            yield step_line(step)
            yield from (f"    {note}" for note in step.notes)
    except KeyboardInterrupt:
        screen.clear()
        yield "interrupted: what has a line stays; the same command goes on with the rest"
        raise
    except BudgetError:
        screen.clear()
        if counts:
            yield _summary(counts, plan)
        raise
    yield _summary(counts, plan)


def step_line(step: HarvestStep) -> str:
    """Return the line of a change: how far it is, status, tests, seconds, id and why."""
    width, row = len(str(step.total)), step.row
    tests = plural(row.tests, "test")
    left = "" if step.left_s is None else f"  (about {spent(step.left_s)} left)"
    why = f"  {_cause(row)}{row.reason}" if row.reason and not step.notes else ""
    return (
        f"{step.done:>{width}}/{step.total}  {row.status.value:<{STATUS_WIDTH}}  {tests:>8}  "
        f"{row.elapsed_s:>6.1f} s  {row.id}{why}{left}"
    )


def _cause(row: HarvestRow) -> str:
    return "" if row.cause is None else f"{row.cause.value}: "


def _summary(counts: Counter[str], plan: HarvestPlan) -> str:
    if not counts:
        return _nothing(plan)
    listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    if counts["needs_manual_scenario"]:
        listed += f"; {plan.suite}/*.manual.md say what to do"
    if not any(plan.suite.glob("*.scenario.yaml")):
        return listed
    return f"{listed}; next: pytest {quote(str(plan.suite))} --tfgrpo-actor reference"


def _nothing(plan: HarvestPlan) -> str:
    """Return why a harvest found nothing to do."""
    if holds_changes(plan):
        return f"nothing is new in {plan.commits}; --retry does again what failed"
    where = f" touches {' or '.join(plan.paths)}" if plan.paths else ""
    return f"no change of {plan.commits}{where}; A..B means the commits that B has and A has not"


def _dry_run(plan: HarvestPlan) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for one in preview(plan):
        if isinstance(one, FixCandidate):
            counts["candidate"] += 1
            files = f"{plural(len(one.tests), 'test file')}, {plural(len(one.sources), 'source file')}"
            yield f"{'candidate':<{STATUS_WIDTH}}  {one.id}  {files}"
        else:
            counts[one.status] += 1
            yield f"{one.status.value:<{STATUS_WIDTH}}  {one.id}  {_cause(one)}{one.reason}"
    listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or _nothing(plan)
    if counts["candidate"]:
        yield _how_long(plan, counts["candidate"])
    yield f"{listed}; nothing was written"


def _how_long(plan: HarvestPlan, candidates: int) -> str:
    """Return how long a harvest takes, by what earlier ones into its suite took."""
    if estimate := estimate_from_rows(read_log_of(plan.suite).values(), candidates, plan.jobs):
        return estimate_line(estimate)
    return "how long it takes is not known before the first candidate has run"
