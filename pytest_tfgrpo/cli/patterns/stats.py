"""``tfgrpo patterns stats`` and ``escaped``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.jobs.job_stats import job_stats, queue_stats
from pytest_tfgrpo.patterns.jobs.manifest import LEARNING
from pytest_tfgrpo.patterns.jobs.queue import QUEUE_FILE, JobQueue
from pytest_tfgrpo.patterns.shelf.escapes import note_escape, reported, reverted
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision
from pytest_tfgrpo.patterns.shelf.shelf_stats import reuse_of, shelf_stats

UNKNOWN = "unknown"
DAY_S, HOUR_S = 86_400, 3_600
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
        **shelf_stats(shelf.log.entries(), patterns),
        "reuse": reuse_of(task, patterns),
    }
    if arguments.json:
        yield json.dumps(figures, indent=1)
    else:
        yield from _lines(figures)


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


def _lines(figures: Mapping[str, Json]) -> Iterator[str]:
    jobs, review, regressions = figures["jobs"], figures["review"], figures["regressions"]
    hygiene, reuse = figures["hygiene"], figures["reuse"]
    yield "validation"
    yield f"  jobs: {_counts(jobs['jobs'])}; pass rate {_share(jobs['pass_rate'])}"
    yield f"  causes of failures: {_counts(jobs['causes'])}"
    stalls = jobs["stalls"]
    took = _time(stalls["median_s"])
    yield f"  stalls: {stalls['open']} open, {stalls['resolved']} resolved, median {took}"
    yield "review"
    rejected = _share(review["rejection_rate"])
    yield f"  {review['waiting']} waiting, {review['decided']} decided, rejected {rejected}"
    yield f"  median latency {_time(review['median_latency_s'])}"
    yield "regressions"
    yield f"  {jobs['regressions_caught']} caught, {regressions['escaped']} escaped"
    yield f"  median time to detect {_time(regressions['median_time_to_detect_s'])}"
    yield "hygiene"
    yield f"  {hygiene['deprecated']} deprecated, {hygiene['reintroduced']} reintroduced"
    yield f"  {hygiene['escaped_and_in_force']} with an escape still in force"
    yield f"  median time to remove {_time(hygiene['median_time_to_remove_s'])}"
    yield "patterns"
    yield f"  {_counts(figures['patterns'])}; trials: {_counts(figures['trials'])}"
    yield f"  {reuse['runs_with_patterns']} of {reuse['runs']} runs started with patterns"
    yield from (f"    {name}: {count}" for name, count in reuse["by_pattern"].items())


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _share(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds >= 2 * DAY_S:
        return f"{seconds / DAY_S:.1f} days"
    return f"{seconds / HOUR_S:.1f} hours" if seconds >= 2 * HOUR_S else f"{seconds:.0f} s"
