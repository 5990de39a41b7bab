"""The command ``tfgrpo arena``: prompt optimizers on one budget, side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pytest_tfgrpo.api.hooked import hooked_optimizers
from pytest_tfgrpo.arena.arena import ENDING, Arena, holding
from pytest_tfgrpo.arena.dry_run import dry_run
from pytest_tfgrpo.arena.opening import begun_arena, open_plan
from pytest_tfgrpo.arena.plan import ArenaPlan
from pytest_tfgrpo.arena.progress import trained_line, watch
from pytest_tfgrpo.arena.recorded import record_arena
from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.lines import arena_lines
from pytest_tfgrpo.arena.report.page import arena_page
from pytest_tfgrpo.arena.result import require_no_bug, write_result
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import open_project
from pytest_tfgrpo.core.file_writing import write_json, write_text
from pytest_tfgrpo.core.files import ARENAS
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.runs.journal.journal_contents import new_run_id
from pytest_tfgrpo.runs.output_folder import make_output

COMPARISON, PAGE = "comparison.json", "arena.html"
"""In the folder of an arena: how its sides compare, for programs and for people."""
KEPT = ("optimizers", "budget_rollouts", "budget_teacher_calls", "budget_usd", "suite", "record", "replay")
"""Arguments that an arena which is resumed has from its beginning."""


def arena(arguments: Arguments) -> Iterator[str]:
    """Let prompt optimizers compete on one budget, and compare what they came to on the eval split."""
    plan = _plan(arguments)
    one = Arena(plan)
    if arguments.dry_run:
        yield from dry_run(plan)
        return
    make_output(plan.out)
    screen = sys.stderr if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    with holding(plan.folder), asyncio.Runner() as runner:
        one.begin()
        yield f"arena  {plan.arena_id}"
        try:
            for name in one.order:
                on_file = name in one.sides
                trained = runner.run(watch(screen, one, name, one.train(name)))
                yield trained_line(name, trained, on_file=on_file)
            result = runner.run(watch(screen, one, "final sweep", one.finish()))
        except ENDING as error:
            raise type(error)(f"{error}; go on with: tfgrpo arena --resume {plan.arena_id}") from error
        except KeyboardInterrupt:
            yield f"interrupted; go on with: tfgrpo arena --resume {plan.arena_id}"
            raise
        write_result(plan.folder, result)
        yield from record_arena(plan, one.abandoned)
    value = compare_sides(result)
    write_json(plan.folder / COMPARISON, value)
    page = plan.folder / PAGE
    write_text(page, arena_page(value))
    yield ""
    yield from arena_lines(value)
    yield f"page   {line(os.path.relpath(page))}"
    require_no_bug(result)


def _plan(arguments: Arguments) -> ArenaPlan:
    """Return the plan of a new arena, or of the one to go on with; raises TfgrpoError."""
    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name))}
    project = open_project(Path.cwd(), flags, os.environ)
    given = {name: getattr(arguments, name) for name in KEPT}
    folder = project.out / project.task_id / ARENAS / new_run_id()
    if arguments.resume is not None:
        folder, given = begun_arena(folder.parent, arguments.resume, given)
    flags |= {name: given[name] for name in ("budget_usd", "record") if given[name] is not None}
    if given["replay"] is not None:
        flags["actor"] = f"replay:{given['replay']}"
    project = open_project(Path.cwd(), flags, os.environ)
    hooked = partial(hooked_optimizers, project.root)
    settings, task, dry = project.settings, project.task_id, arguments.dry_run
    return open_plan(project.root, settings, task, folder, given, os.environ, hooked, dry=dry)
