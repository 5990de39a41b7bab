"""The page over an arena: one file, readable without scripts; equal results give an equal page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.arena.report.lines import gain_rows, pair_rows, training_rows
from pytest_tfgrpo.arena.report.sentences import first_sentence, remarks, winner
from pytest_tfgrpo.report.page import template

SCRIPTS = ("text.js", "sortable_table.js", "run_history.js")
WIDTH, MARGIN = 240, 6
"""Of the drawing of an interval, in SVG units."""


def arena_page(value: Mapping[str, Any]) -> str:
    """Return the page of what `compare_sides` found."""
    style, script = template.style("arena.css"), template.script(SCRIPTS)
    return template.fill(
        "arena.html.j2",
        value=value,
        first=first_sentence(value),
        gains=list(zip(value["sides"], gain_rows(value), strict=True)),
        training=list(zip(value["sides"], training_rows(value), strict=True)),
        pairs=pair_rows([pair for pair in value["pairs"] if pair["before"] != value["over"]]),
        won=winner(value) is not None,
        remarks=list(remarks(value)),
        drawing=_drawing(value["sides"]),
        style=style,
        script=script,
        policy=template.policy(style, script),
    )


def _drawing(sides: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return where the gain of each side and its interval lie, all on one scale; None without any."""
    gains = {side["name"]: side["gain"] for side in sides if side["gain"] and side["gain"]["n"]}
    seen = [0.0]
    for gain in gains.values():
        seen += [gain["difference"], *(gain["ci95"] or ())]
    low, high = math.floor(min(seen) * 20) / 20, math.ceil(max(seen) * 20) / 20
    if low == high:
        return None

    def across(gain: float) -> float:
        return round(MARGIN + (gain - low) / (high - low) * (WIDTH - 2 * MARGIN), 1)

    return {
        "width": WIDTH,
        "zero": across(0.0),
        "ends": (low, high),
        "marks": {
            name: {"at": across(gain["difference"]), "ends": gain["ci95"] and [*map(across, gain["ci95"])]}
            for name, gain in gains.items()
        },
    }
