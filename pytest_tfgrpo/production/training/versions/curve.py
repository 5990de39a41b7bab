"""The curve of a training job as SVG: the mean score of each phase of its run."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from pytest_tfgrpo.core.wire.wire import Json

WIDTH, HEIGHT, EDGE = 480, 240, 40


def curve_svg(report: Mapping[str, Json]) -> str:
    """Return the picture of the phases of a report that have a mean score, from 0 to 1."""
    points = [
        (str(row["mode"]), int(row["epoch"]), float(row["gt_score"]["mean"]))
        for row in report["epochs"]
        if row["gt_score"]["mean"] is not None
    ]
    step = (WIDTH - 2 * EDGE) / max(1, len(points) - 1)
    placed = [
        (EDGE + n * step, HEIGHT - EDGE - mean * (HEIGHT - 2 * EDGE), f"{mode} {epoch}", mean)
        for n, (mode, epoch, mean) in enumerate(points)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in placed)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        f'<text x="{x:.1f}" y="{y - 8:.1f}">{mean:.2f}</text>'
        f'<text x="{x:.1f}" y="{HEIGHT - 16}">{escape(name)}</text>'
        for x, y, name, mean in placed
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">'
        f"<title>Mean score by phase of run {escape(str(report['run_id']))}</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<path d="M{EDGE} {EDGE}V{HEIGHT - EDGE}H{WIDTH - EDGE}" fill="none" stroke="#888"/>'
        f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="2"/>{marks}</svg>\n'
    )
