"""Cost against score as SVG coordinates: one point for each agent; the template turns them into marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_tfgrpo.core.texts.text import price

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 40, 20, 52
"""Margins of the plot in its drawing, in SVG units."""
ROW = 16
"""Least distance of two names."""
LETTER = 7.2
"""Width of a letter of a name."""
FAR = 30.0
"""Ratio of the largest value to the smallest from which the axis is logarithmic."""
ZOOM = 0.5
"""Range of scores, with their intervals, below which the axis shows but a part of 0 to 1."""

_Say: TypeAlias = Callable[[float], str]


def cost_chart(agents: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the drawing of what a rollout of the final sweep costs against its mean score.

    Where the money is not known of all agents, it is their tokens, else the time of a rollout; what is 0 for
    all of them tells nothing. None where nothing is known of two agents.
    """
    scored = [one for one in agents if one["final"] is not None and one["final"]["mean"] is not None]
    axes: list[tuple[str, Callable[[Any], float | None], _Say]] = [
        ("US dollars per rollout", _usd, price),
        ("tokens per rollout", lambda final: final["tokens"]["mean"], _tokens),
        ("time per rollout (median)", lambda final: final["p50_ms"], _time),
    ]
    for title, value, said in axes:
        values = [known for one in scored if (known := value(one["final"])) is not None]
        if len(values) > 1 and len(values) == len(scored) and max(values) > 0:
            left_out = [one["name"] for one in agents if one not in scored]
            return _drawn(title, scored, values, said, left_out)
    return None


def _usd(final: Mapping[str, Any]) -> float | None:
    """Return the mean cost of a rollout where that of each is known."""
    cost = final["cost_usd"]
    return cost["mean"] if cost["n"] and cost["n"] == final["rollouts"] - final["errors"] else None


def _tokens(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.4g}{unit}"
    return f"{value:.4g}"


def _time(value_ms: float) -> str:
    return f"{value_ms / 1000:.4g} s" if value_ms >= 1000 else f"{value_ms:.4g} ms"


def _drawn(
    title: str,
    agents: Sequence[Mapping[str, Any]],
    values: Sequence[float],
    said: _Say,
    left_out: Sequence[str],
) -> dict[str, Any]:
    share, marks, how = _across(values)
    low, high, step = _scores([one["final"] for one in agents])

    def across(value: float) -> float:
        return round(LEFT + share(value) * (WIDTH - LEFT - RIGHT), 1)

    def height(score: float) -> float:
        return round(TOP + (high - score) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    points = [
        {
            "name": one["name"],
            "x": across(value),
            "y": height(one["final"]["mean"]),
            "low": None if one["final"]["ci95"] is None else height(one["final"]["ci95"][0]),
            "high": None if one["final"]["ci95"] is None else height(one["final"]["ci95"][1]),
            "said": f"{one['final']['mean']:.3f} at {said(value)}",
        }
        for one, value in zip(agents, values, strict=True)
    ]
    _place_names(points)
    return {
        "title": f"{title}{how}",
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "base": HEIGHT - BOTTOM,
        "top": TOP,
        "grid": [
            (height(score), f"{score:g}")
            for score in (round(low + n * step, 2) for n in range(math.floor((high - low) / step + 1e-6) + 1))
        ],
        "from": low,
        "ticks": [(across(mark), said(mark)) for mark in marks],
        "points": points,
        "left_out": list(left_out),
    }


def _across(values: Sequence[float]) -> tuple[Callable[[float], float], list[float], str]:
    """Return how far right a value stands, from 0 to 1, the values of the marks, and what to say of the axis.

    The axis starts at 0; values that are far apart stand by their logarithms.
    """
    low, high = min(values), max(values)
    if low <= 0 or high / low < FAR:
        top, step = _limit(high)
        return lambda value: value / top, [n * step for n in range(1, round(top / step) + 1)], ""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = math.ceil((last - first) / 6)

    def share(value: float) -> float:
        return (math.log10(value) - first) / (last - first)

    return share, [10.0**power for power in range(first, last + 1, every)], ", logarithmic"


def _scores(finals: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """Return where the axis of scores starts and ends, and the step of its lines; a small range fills it."""
    seen = [value for final in finals for value in (final["mean"], *(final["ci95"] or ()))]
    low, high = max(0.0, math.floor(min(seen) * 20) / 20), min(1.0, math.ceil(max(seen) * 20) / 20)
    if high - low >= ZOOM:
        return 0.0, 1.0, 0.25
    if high - low < 0.1:
        low, high = max(0.0, high - 0.1), max(high, 0.1)
    return round(low, 2), round(high, 2), 0.05 if high - low <= 0.3 else 0.1


def _place_names(points: list[dict[str, Any]]) -> None:
    """Say where the name of each point stands: beside it, and no two above each other."""
    taken: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda one: (one["y"], one["x"])):
        wide = LETTER * len(point["name"])
        ends = point["x"] + 10 + wide > WIDTH - RIGHT
        start = point["x"] - 10 - wide if ends else point["x"] + 10
        at = point["y"] + 4
        for low, high, other in sorted(taken, key=lambda one: one[2]):
            if start < high and low < start + wide and at < other + ROW:
                at = other + ROW
        taken.append((start, start + wide, at))
        point |= {"anchor": "end" if ends else "start", "name_x": point["x"] + (-10 if ends else 10)}
        point["name_y"] = round(at, 1)


def _limit(highest: float) -> tuple[float, float]:
    """Return a round limit above the values, and the step of the marks up to it."""
    highest = highest if highest > 0 else 1.0
    size = 10 ** math.floor(math.log10(highest / 4))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if highest * 1.05 / (size * k) <= 5)
    return math.ceil(highest * 1.05 / step) * step, step
