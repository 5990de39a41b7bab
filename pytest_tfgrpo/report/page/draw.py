"""Drawings of a page as SVG coordinates; the templates turn them into marks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pytest_tfgrpo.core.records import TRAINING
from pytest_tfgrpo.core.texts.text import label
from pytest_tfgrpo.numerics.stats import mean_interval
from pytest_tfgrpo.report.page.grid import Grid, final_label, phase_name

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 12, 34
"""Margins of the plot inside the curve's drawing, in SVG units."""
BINS = ("0", "0 to .2", ".2 to .4", ".4 to .6", ".6 to .8", ".8 to 1", "1")
"""Scores of exactly 0 and 1 stand apart: most checks give nothing else."""
MAX_DOMAINS = 48
RESAMPLES = 2_000
"""Enough for a drawing of 280 units; there may be hundreds of such intervals."""


def curve(
    rows: Sequence[Mapping[str, Any]],
    other: Sequence[Mapping[str, Any]] = (),
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> dict[str, Any]:
    """Return a learning curve as SVG coordinates: one point per sweep or epoch that has a mean.

    `other` are the rows of a second run, drawn beside the first where the labels agree.
    """
    known, second = _named(rows), _named(other)
    labels = list(dict.fromkeys(row["label"] for row in (*known, *second)))
    step = (width - LEFT - RIGHT) / max(len(labels), 1)
    # With many epochs only some labels fit.
    every = math.ceil(len(labels) / max(2, width // 80))
    last = len(labels) - 1
    place = {
        name: {"x": LEFT + step * (i + 0.5), "named": i == last or (i % every == 0 and last - i >= every)}
        for i, name in enumerate(labels)
    }
    shift = min(6.0, step / 6) if second else 0.0
    first = [_point(row, place, -shift, height) for row in known]
    sweeps = [point for point in first if point["row"]["mode"] not in TRAINING]
    for point, after in pairwise(sweeps):
        point["rises"] = after["y"] < point["y"]
    start = next((row for row in known if row["mode"] == "baseline"), None)
    return {
        "width": width,
        "height": height,
        "left": LEFT,
        "right": width - RIGHT,
        "base": height - BOTTOM,
        "grid": [
            (_height(share, height), f"{share:g}")
            for share in ((0, 0.25, 0.5, 0.75, 1) if height > 160 else (0, 0.5, 1))
        ],
        "ticks": [(round(at["x"], 1), name) for name, at in place.items() if at["named"]],
        "points": first,
        "line": _line(first),
        "other": (second_points := [_point(row, place, shift, height) for row in second]),
        "other_line": _line(second_points),
        "baseline": None if start is None else _height(start["gt_score"]["mean"], height),
    }


def domains(grid: Grid) -> list[dict[str, Any]]:
    """Return one small curve per domain, by name; at most MAX_DOMAINS."""
    means: dict[str, list[list[float]]] = {}
    for row in grid.rows:
        columns = means.setdefault(row.domain, [[] for _ in grid.columns])
        for values, cell in zip(columns, row.cells, strict=True):
            if cell is not None and cell.mean is not None:
                values.append(cell.mean)
    if len(means) < 2:
        return []
    return [{"domain": name, **_small(grid, means[name])} for name in sorted(means)[:MAX_DOMAINS]]


def _small(grid: Grid, means: Sequence[Sequence[float]]) -> dict[str, Any]:
    rows = []
    for column, values in zip(grid.columns, means, strict=True):
        if column.mode == "dev" or not values:
            continue
        found = mean_interval(values, resamples=RESAMPLES)
        score = {"mean": math.fsum(values) / len(values), "ci95": found.ci95, "n": len(values)}
        rows.append({"label": column.name, "mode": column.mode, "gt_score": score})
    return curve(rows, width=280, height=150)


def histograms(grid: Grid) -> list[dict[str, Any]]:
    """Return the distribution of gt_score in each column: over rollouts, else over means of scenarios."""
    found = []
    for i, column in enumerate(grid.columns):
        scores = [s.gt_score for group in column.groups.values() for s in group.scores]
        known = [score for score in scores if score is not None]
        errors = len(scores) - len(known)
        if not column.groups:
            cells = [row.cells[i] for row in grid.rows]
            known = [cell.mean for cell in cells if cell is not None and cell.mean is not None]
        if known or errors:
            found.append({"label": column.name, "n": len(known), "errors": errors, **_bars(known)})
    return found


def _bars(scores: Sequence[float]) -> dict[str, Any]:
    counts = [0] * len(BINS)
    for score in scores:
        inner = min(4, int(score * 5)) + 1
        counts[0 if score <= 0 else len(BINS) - 1 if score >= 1 else inner] += 1
    most = max(counts) or 1
    bars = [
        {"x": 6 + 38 * i, "height": round(90 * n / most, 1), "n": n, "bin": BINS[i]}
        for i, n in enumerate(counts)
    ]
    return {"bars": bars}


def _point(
    row: Mapping[str, Any], place: Mapping[str, Mapping[str, Any]], shift: float, height: int
) -> dict[str, Any]:
    low, high = row["gt_score"]["ci95"] or (None, None)
    return {
        "x": round(place[row["label"]]["x"] + shift, 1),
        "y": _height(row["gt_score"]["mean"], height),
        "low": None if low is None else _height(low, height),
        "high": None if high is None else _height(high, height),
        "label": row["label"],
        "row": row,
        "named": place[row["label"]]["named"],
        "rises": False,
    }


def _named(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that have a mean, each with a name for readers as its ``label``, without a placebo."""
    known = [row for row in rows if row["gt_score"]["mean"] is not None and row["mode"] != "placebo"]
    if any("label" in row for row in known):
        return known
    final = final_label(rows)
    return [{**row, "label": phase_name(label(row), final)} for row in known]


def _line(points: Sequence[Mapping[str, Any]]) -> str:
    """Return the polyline through the sweeps: training epochs draw other scenarios."""
    return " ".join(f"{point['x']},{point['y']}" for point in points if point["row"]["mode"] not in TRAINING)


def _height(share: float, height: int) -> float:
    return round(TOP + (1 - share) * (height - TOP - BOTTOM), 1)
