"""Cost against score as SVG coordinates: one point for each agent; the template turns them into marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.texts.text import count, duration, money

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 40, 20, 52
"""Margins of the plot in its drawing, in SVG units."""
ROW = 16
"""Least distance of two names."""
LETTER = 7.2
"""Width of a letter of a name."""


def cost_chart(agents: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the drawing of what a rollout of the final sweep costs against its mean score.

    Where the money is not known of all agents, it is their tokens, else the time of a rollout. None where
    nothing is known of two agents.
    """
    scored = [one for one in agents if one["final"] is not None and one["final"]["mean"] is not None]
    axes: list[tuple[str, Callable[[Any], float | None], Callable[[float], str]]] = [
        ("US dollars per rollout", _usd, money),
        ("tokens per rollout", lambda final: final["tokens"]["mean"], count),
        ("time per rollout (median)", lambda final: final["p50_ms"], duration),
    ]
    for title, value, said in axes:
        known = [one for one in scored if value(one["final"]) is not None]
        if len(known) > 1 and len(known) == len(scored):
            left_out = [one["name"] for one in agents if one not in known]
            return _drawn(title, known, [value(one["final"]) or 0.0 for one in known], said, left_out)
    return None


def _usd(final: Mapping[str, Any]) -> float | None:
    """Return the mean cost of a rollout where that of each is known."""
    cost = final["cost_usd"]
    return cost["mean"] if cost["n"] and cost["n"] == final["rollouts"] - final["errors"] else None


def _drawn(
    title: str,
    agents: Sequence[Mapping[str, Any]],
    values: Sequence[float],
    said: Callable[[float], str],
    left_out: Sequence[str],
) -> dict[str, Any]:
    top, step = _limit(max(values))

    def across(value: float) -> float:
        return round(LEFT + value / top * (WIDTH - LEFT - RIGHT), 1)

    def height(score: float) -> float:
        return round(TOP + (1.0 - score) * (HEIGHT - TOP - BOTTOM), 1)

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
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "base": HEIGHT - BOTTOM,
        "top": TOP,
        "grid": [(height(share), f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)],
        "ticks": [(across(n * step), said(n * step)) for n in range(1, round(top / step) + 1)],
        "points": points,
        "left_out": list(left_out),
    }


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
