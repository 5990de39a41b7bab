"""The figures of jobs and patterns for people: as lines, and as a page that is readable without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.shelf.shelf import ShelfFile
from pytest_tfgrpo.report.page import template

UNKNOWN = "unknown"
DAY_S, HOUR_S = 86_400, 3_600
SCRIPTS = ("text.js", "sortable_table.js", "run_history.js")


def stats_sections(figures: Mapping[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each section and its lines, safety first."""
    jobs, review, regressions = figures["jobs"], figures["review"], figures["regressions"]
    hygiene, reuse, stalls = figures["hygiene"], figures["reuse"], figures["jobs"]["stalls"]
    yield (
        "validation",
        [
            f"jobs: {_counts(jobs['jobs'])}; pass rate {_share(jobs['pass_rate'])}",
            f"causes of failures: {_counts(jobs['causes'])}",
            f"stalls: {stalls['open']} open, {stalls['resolved']} resolved, "
            f"median {_time(stalls['median_s'])}",
        ],
    )
    yield (
        "review",
        [
            f"{review['waiting']} waiting, {review['decided']} decided, "
            f"rejected {_share(review['rejection_rate'])}",
            f"median latency {_time(review['median_latency_s'])}",
        ],
    )
    yield (
        "regressions",
        [
            f"{jobs['regressions_caught']} caught, {regressions['escaped']} escaped",
            f"median time to detect {_time(regressions['median_time_to_detect_s'])}",
        ],
    )
    yield (
        "hygiene",
        [
            f"{hygiene['deprecated']} deprecated, {hygiene['reintroduced']} reintroduced",
            f"{hygiene['escaped_and_in_force']} with an escape still in force",
            f"median time to remove {_time(hygiene['median_time_to_remove_s'])}",
        ],
    )
    yield (
        "patterns",
        [
            f"{_counts(figures['patterns'])}; trials: {_counts(figures['trials'])}",
            f"{reuse['runs_with_patterns']} of {reuse['runs']} runs started with patterns",
            *(f"  {name}: {count}" for name, count in reuse["by_pattern"].items()),
        ],
    )


def stats_page(name: str, figures: Mapping[str, Json], files: Sequence[ShelfFile]) -> str:
    """Return the page of a task: its figures, and the patterns that lie on the shelf."""
    style, script = template.style(), template.script(SCRIPTS)
    return template.fill(
        "patterns.html.j2",
        name=name,
        sections=[*stats_sections(figures)],
        files=files,
        uses=figures["reuse"]["by_pattern"],
        style=style,
        script=script,
        policy=template.policy(style, script),
    )


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
