"""Drawings of the loop's page as SVG coordinates; the template turns them into marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_tfgrpo.production.deployment.rules import DROP
from pytest_tfgrpo.production.report.page.transitions import DeployStep, StepEvidence

MOST = 120
"""Transitions that are drawn: more could not be distinguished."""
WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 66, 6, 12, 34
NAME = 42
"""Width that the name of a version needs."""
REACH = 0.3
"""Differences of the mean reward beyond which a bar of bounds is cut off."""
BOUNDS_WIDTH, BOUNDS_HEIGHT = 150, 18


def shares(steps: Sequence[DeployStep]) -> dict[str, Any] | None:
    """Return a bar for the share that each transition gave its version, the newest `MOST`; None without."""
    drawn = [step for step in steps if step.share is not None][-MOST:]
    if not drawn:
        return None
    across, base = (WIDTH - LEFT - RIGHT) / len(drawn), HEIGHT - BOTTOM
    wide = min(30.0, 0.8 * across)

    def height(share: float) -> float:
        return round(TOP + (1.0 - min(100.0, max(0.0, share)) / 100.0) * (base - TOP), 1)

    bars, ticks, before = [], list[tuple[float, str]](), ""
    for n, step in enumerate(drawn):
        middle = round(LEFT + across * (n + 0.5), 1)
        top = height(step.share or 0.0)
        bars.append(
            {"x": round(middle - wide / 2, 1), "y": top, "height": round(base - top, 1), "step": step}
        )
        if step.version != before and (not ticks or middle - ticks[-1][0] >= NAME):
            ticks.append((middle, step.version))
        before = step.version
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "base": base,
        "wide": round(wide, 1),
        "grid": [(height(share), f"{share} %") for share in (0, 25, 50, 75, 100)],
        "bars": bars,
        "ticks": ticks,
        "left_out": len(steps) - len(drawn),
    }


def bounds(found: StepEvidence | None) -> dict[str, float] | None:
    """Return the difference of the arms with its bounds on the scale that all steps share; None without."""
    if found is None or found.difference is None or found.low is None or found.high is None:
        return None
    return {
        "width": BOUNDS_WIDTH,
        "height": BOUNDS_HEIGHT,
        "middle": BOUNDS_HEIGHT / 2,
        "zero": _place(0.0),
        "drop": _place(-DROP),
        "low": _place(found.low),
        "high": _place(found.high),
        "difference": _place(found.difference),
    }


def _place(value: float) -> float:
    inside = min(REACH, max(-REACH, value))
    return round((inside + REACH) / (2 * REACH) * (BOUNDS_WIDTH - 10) + 5, 1)
