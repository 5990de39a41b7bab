"""``tfgrpo patterns stats`` and ``escaped``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.cli.page_file import write
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.jobs.job_stats import job_stats, queue_stats
from pytest_tfgrpo.patterns.jobs.manifest import LEARNING
from pytest_tfgrpo.patterns.jobs.queue import QUEUE_FILE, JobQueue
from pytest_tfgrpo.patterns.shelf.escapes import note_escape, reported, reverted
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision
from pytest_tfgrpo.patterns.shelf.shelf_stats import reuse_of, shelf_stats
from pytest_tfgrpo.patterns.shelf.stats_page import stats_page, stats_sections

REVERTED = "a later commit reverts its change"


def stats(arguments: Arguments) -> Iterator[str]:
    """Print how jobs, reviews and patterns fare: what failed, was rejected, escaped, and is in use."""
    shelf, project = open_shelf(arguments), project_of(arguments)
    task = project.out / project.task_id
    jobs: Mapping[str, Json] = job_stats(())
    if (task / LEARNING / QUEUE_FILE).is_file():
        with JobQueue(task / LEARNING) as queue:
            jobs = queue_stats(queue)
    patterns = shelf.patterns()
    figures = {
        "schema": "tfgrpo.pattern-stats/1",
        "jobs": jobs,
        **shelf_stats(shelf.entries(), patterns),
        "reuse": reuse_of(task, patterns),
    }
    if arguments.json:
        yield json.dumps(figures, indent=1)
    else:
        for section, rows in stats_sections(figures):
            yield section
            yield from (f"  {row}" for row in rows)
    if arguments.html:
        text = stats_page(project.task_id, figures, shelf.files())
        yield write(Path(arguments.html), lambda: write_text(Path(arguments.html), text))


def escaped(arguments: Arguments) -> Iterator[str]:
    """Note a regression that a pattern's change let through; without NAME look for reverts."""
    shelf = open_shelf(arguments)
    if (arguments.name is None) != (arguments.commit is None):
        raise SettingError(
            "name a pattern and --commit, or neither: then reverts are looked for in the history"
        )
    if arguments.name is not None:
        found = [reported(shelf, arguments.name, arguments.commit)]
    else:
        found = reverted(shelf.root, shelf.patterns())
    for escape in found:
        new = note_escape(shelf, escape, ShelfDecision(by=arguments.by, reason=arguments.reason or REVERTED))
        known = "noted" if new else "already known"
        yield f"{known}  {escape.pattern.name}  {escape.commit[:12]}"
        if escape.pattern.status.value == "active":
            yield f"  it is in force: 'tfgrpo patterns deprecate {escape.pattern.name}' takes it from agents"
    if not found:
        yield "no change of a pattern was reverted"
