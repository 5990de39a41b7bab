"""The report as one self-contained HTML page without scripts; the only file that imports jinja2."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.harness import bill
from pytest_tfgrpo.harness.judge import lines as judge
from pytest_tfgrpo.harness.printable import block, count, duration, interval, line, money, number
from pytest_tfgrpo.harness.render import OUTCOMES, cost, label, lessons_changed, signed

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 12, 34
"""Margins of the plot inside the curve's drawing, in SVG units."""


def html(report: Mapping[str, Any]) -> str:
    """Return the page of a report value."""
    style = _environment().get_template("report.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            curve=curve(report["epochs"]),
            style=style,
            policy=f"default-src 'none'; style-src 'sha256-{digest}'",
        )
    )


def curve(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the learning curve as SVG coordinates: one point per sweep or epoch that has a mean."""
    known = [row for row in rows if row["gt_score"]["mean"] is not None]
    step = (WIDTH - LEFT - RIGHT) / max(len(known), 1)
    points: list[dict[str, Any]] = []
    for i, row in enumerate(known):
        low, high = row["gt_score"]["ci95"] or (None, None)
        points.append(
            {
                "x": round(LEFT + step * (i + 0.5), 1),
                "y": _height(row["gt_score"]["mean"]),
                "low": None if low is None else _height(low),
                "high": None if high is None else _height(high),
                "label": label(row),
                "row": row,
                # With many epochs only some labels fit.
                "named": i % math.ceil(len(known) / 8) == 0 or i == len(known) - 1,
            }
        )
    sweeps = [point for point in points if point["row"]["mode"] != "train"]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "base": HEIGHT - BOTTOM,
        "grid": [(_height(share), f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)],
        "points": points,
        "line": " ".join(f"{point['x']},{point['y']}" for point in sweeps),
    }


def _height(share: float) -> float:
    return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_tfgrpo.harness"),
        autoescape=lambda name: name is None or not name.endswith(".css"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        line=lambda value: line(str(value)),
        block=lambda value: block(str(value)),
        number=number,
        count=count,
        duration=duration,
        interval=interval,
        money=money,
        signed=signed,
        label=label,
        lessons=lessons_changed,
    )
    environment.globals.update(cost=cost, outcomes=OUTCOMES, bill=bill, judge=judge)
    return environment
