"""The page over agents side by side: one file, readable without scripts; equal values give an equal page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.report.agents import lines
from pytest_tfgrpo.report.agents.chart import cost_chart
from pytest_tfgrpo.report.page import template

SCRIPTS = ("text.js", "sortable_table.js", "run_history.js")
ROWS = 400
"""Scenarios in the table."""


def agents_page(value: Mapping[str, Any], links: Mapping[str, str]) -> str:
    """Return the page; `links` lead to the pages of the agents' runs, by name."""
    style, script = template.style("agents.css"), template.script(SCRIPTS)
    return template.fill(
        "agents.html.j2",
        value=value,
        chart=cost_chart(value["agents"]),
        lines=lines,
        metrics=_metrics(value),
        shown=value["scenarios"][:ROWS],
        links=links,
        style=style,
        script=script,
        policy=template.policy(style, script),
    )


def _metrics(value: Mapping[str, Any]) -> list[tuple[str, list[float | None]]]:
    """Return the means of further metrics by agent."""
    means: dict[str, dict[str, float | None]] = {}
    for pair in value["pairs"]:
        for row in pair["metrics"]:
            own = means.setdefault(row["name"], {})
            own.setdefault(pair["before"], row["before"])
            own.setdefault(pair["after"], row["after"])
    names = [agent["name"] for agent in value["agents"]]
    return [(name, [own.get(one) for one in names]) for name, own in means.items() if name != "gt_score"]
