"""The runs of a task as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.texts.text import line, signed, table, wrapped
from pytest_tfgrpo.report.run_history.past_runs import (
    UNREADABLE,
    PastRun,
    agents,
    short,
    span,
    suites,
)

RUN_DIGITS = 15
"""Characters of a run's id: the time of its start, by which commands find it."""
STATE = 17
"""Characters of what became of a run without figures."""
WIDTH = 80


def history_lines(runs: Sequence[PastRun], most: int) -> Iterator[str]:
    """Yield a table of the newest `most` runs, oldest first."""
    shown = runs[-most:]
    splits, letters = suites(runs), agents(shown)
    if len(splits) < 2:
        splits = {}
    if len(letters) < 2:
        letters = {}
    several = bool(splits or letters)
    head = ["run", "mean, 95 %", "gain", "cost", "time", "commit", "library", *(["of"] if several else [])]
    rows = [_row(run, splits.get(run.suite, "") + letters.get(run.actor, "")) for run in shown]
    yield from table(head, [row if several else row[:-1] for row in rows], left=2)
    if any(run.commit.endswith("+dirty") for run in shown):
        yield "*: files differed from the commit"
    if any(run.state == UNREADABLE for run in shown):
        yield f"{UNREADABLE}: damaged, or of another version; see `tfgrpo report RUN`"
    if several:
        what = "the eval split" if not letters else "eval split and agent" if splits else "the agent"
        yield f"of: {what}; means of different ones are not comparable"
    for actor, letter in letters.items():
        yield from wrapped(f"{letter}: {actor or '-'}", WIDTH, hanging="   ")


def _row(run: PastRun, of: str) -> list[str]:
    mean = line(run.state, STATE)
    if run.scores.mean is not None:
        bounds = (
            ""
            if run.scores.ci95 is None
            else " " + "-".join(f"{bound:.3f}".lstrip("0") for bound in run.scores.ci95)
        )
        mean = (
            f"{run.scores.mean:.3f}{bounds}"
            if run.counts
            else f"{run.scores.mean:.3f} {line(run.state, STATE - 6)}"
        )
    return [
        line(run.run_id, None)[:RUN_DIGITS],
        mean,
        signed(run.scores.gain),
        run.cost or "-",
        span(run.seconds),
        short(run.commit) or "-",
        run.lessons_hash[:7] or "-",
        of or "-",
    ]
