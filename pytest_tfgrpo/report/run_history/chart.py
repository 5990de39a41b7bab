"""Charts over runs as SVG coordinates; the template turns them into marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pytest_tfgrpo.core.report_blocks import Bounds
from pytest_tfgrpo.core.texts.text import money
from pytest_tfgrpo.report.run_history.past_runs import PastRun, agents, short, span

_Say = Callable[[float, int], str]
"""Says a value with some further digits."""
_Name = tuple[str, Callable[[PastRun], str], int]
"""A title, what names a run, and the width that a name takes."""

MOST = 120
"""Runs that are drawn: more could not be distinguished."""
WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 10
"""Margins of the plot in its drawing, in SVG units; below it are the lines of names too."""
LINE = 18
"""Height of a line of names under the plot."""
LABEL, LETTER = 54, 14
"""Width that the name of a commit or library needs, and that of an agent."""
MOST_DIGITS = 3
"""Further digits that labels of an axis get at most until they differ."""
_NARROWEST = 1e-300
"""Parts of a narrower span of values would be 0."""


def charts(runs: Sequence[PastRun]) -> list[dict[str, Any]]:
    """Return a chart for mean, gain, cost and time of the newest runs that count, oldest first."""
    drawn = [run for run in runs if run.counts][-MOST:]
    makers: list[tuple[str, Callable[[PastRun], float | None], Callable[[PastRun], Bounds], _Say]] = [
        (
            "Mean gt_score of the final sweep",
            lambda run: run.scores.mean,
            lambda run: run.scores.ci95,
            _plain,
        ),
        (
            "Gain over the baseline sweep",
            lambda run: run.scores.gain,
            lambda run: run.scores.gain_ci95,
            _signed,
        ),
        ("Cost", lambda run: run.usd, lambda _: None, _money),
        ("Time from start to end", lambda run: run.seconds, lambda _: None, span),
    ]
    found, names = [], _names(agents(runs))
    for title, value, bounds, said in makers:
        if any(value(run) is not None for run in drawn):
            found.append({"title": title, **_chart(drawn, value, bounds, said, names)})
    return found


def _plain(value: float, more: int) -> str:
    return f"{value:.{2 + more}f}"


def _signed(value: float, more: int) -> str:
    return f"{value:+.{2 + more}f}"


def _money(value: float, more: int) -> str:
    return f"${value:.{2 + 3 * more}f}" if more else money(value)


def _labels(values: Sequence[float], said: _Say) -> list[str]:
    """Return the values as texts that differ, with as few digits as that takes."""
    texts = list[str]()
    for more in range(MOST_DIGITS + 1):
        texts = [said(value, more) for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts


def _chart(
    runs: Sequence[PastRun],
    value: Callable[[PastRun], float | None],
    bounds: Callable[[PastRun], Bounds],
    said: _Say,
    names: Sequence[_Name],
) -> dict[str, Any]:
    reached = [known for run in runs for known in (value(run), *(bounds(run) or ())) if known is not None]
    low, high, step = _scale(min(*reached, 0.0), max(*reached, 0.0))
    across = (WIDTH - LEFT - RIGHT) / len(runs)
    base = HEIGHT - BOTTOM - LINE * len(names)

    def height(at: float) -> float:
        return round(TOP + (high - at) / (high - low) * (base - TOP), 1)

    points = []
    for n, run in enumerate(runs):
        at, limits = value(run), bounds(run)
        if at is not None:
            points.append(
                {
                    "x": round(LEFT + across * (n + 0.5), 1),
                    "y": height(at),
                    "low": None if limits is None else height(limits[0]),
                    "high": None if limits is None else height(limits[1]),
                    "run": run,
                    "said": said(at, 0),
                }
            )
    lines = [low + n * step for n in range(round((high - low) / step) + 1)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "base": base,
        "grid": list(zip(map(height, lines), _labels(lines, said), strict=True)),
        "zero": height(0.0) if low < 0 else None,
        "points": points,
        "radius": max(2.0, min(5.0, across / 3)),
        "lines": list(_lines(points)),
        "ticks": [
            (title, _ticks(runs, across, name, room), base + LINE * n)
            for n, (title, name, room) in enumerate(names, 1)
        ],
        "changes": _changes(runs, across),
    }


def _changes(runs: Sequence[PastRun], across: float) -> list[float]:
    """Return where the library changes."""
    return [
        round(LEFT + across * n, 1)
        for n, (before, after) in enumerate(pairwise(runs), 1)
        if before.lessons_hash != after.lessons_hash
    ]


def _names(letters: Mapping[str, str]) -> list[_Name]:
    """Return what names the runs under the plot; `letters` are those of agents."""
    named: list[_Name] = [
        ("commit", lambda run: short(run.commit) or "-", LABEL),
        ("library", lambda run: run.lessons_hash[:7] or "-", LABEL),
    ]
    if len(letters) > 1:
        named.append(("agent", lambda run: letters[run.actor], LETTER))
    return named


def _lines(points: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each stretch of runs of one agent and eval split: others do not compare."""
    stretch: list[dict[str, Any]] = []
    for point in points:
        if stretch and _compared(stretch[-1]["run"]) != _compared(point["run"]):
            yield _path(stretch)
            stretch = []
        stretch.append(point)
    if stretch:
        yield _path(stretch)


def _compared(run: PastRun) -> tuple[str, str]:
    return run.actor, run.suite


def _path(points: Sequence[dict[str, Any]]) -> str:
    return " ".join(f"{point['x']},{point['y']}" for point in points)


def _ticks(
    runs: Sequence[PastRun], across: float, name: Callable[[PastRun], str], room: int
) -> list[tuple[float, str]]:
    """Return where a name begins to hold; of names that would overlap the first."""
    found: list[tuple[float, str]] = []
    before = None
    for n, run in enumerate(runs):
        place = round(LEFT + across * (n + 0.5), 1)
        if name(run) != before and (not found or place - found[-1][0] >= room):
            found.append((place, name(run)))
        before = name(run)
    return found


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Return round limits about the values, and the step of the lines between them."""
    high = high if high - low > _NARROWEST else low + 1.0
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if (high - low) / (size * k) <= 5)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step
