"""The page over agents side by side: one file, readable without scripts; equal values give an equal page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.agents import lines
from pytest_tfgrpo.report.agents.chart import cost_chart
from pytest_tfgrpo.report.page import template
from pytest_tfgrpo.report.page.beside import said_by
from pytest_tfgrpo.report.page.html import PLAIN_ROWS, with_data
from pytest_tfgrpo.report.page.layout import Layout, agents_layout
from pytest_tfgrpo.report.page.payload import payload
from pytest_tfgrpo.report.page.previews import Preview, previews

SCRIPTS = tuple(name for name in template.SCRIPTS if name != "review.js")


def agents_page(value: Mapping[str, Any], runs: Mapping[str, Run], links: Mapping[str, str]) -> str:
    """Return the page of a comparison of `runs`, by agent; `links` lead to the pages of their own."""
    style, script = template.style("agents.css"), template.script(SCRIPTS)
    laid = agents_layout(runs, [row["scenario"] for row in value["scenarios"]], links)
    run = None if laid is None else laid.run
    said = previews(laid.cells, run) if laid is not None and run is not None else []
    markup = template.fill(
        "agents.html.j2",
        value=value,
        chart=cost_chart(value["agents"]),
        lines=lines,
        metrics=_metrics(value),
        ranking=_ranking(value["agents"]),
        grid=None if laid is None else laid.cells,
        run_id=value["id"],
        report=None,
        compare=None,
        sides=list(runs),
        said=said,
        shown=value["scenarios"][: min(PLAIN_ROWS, len(said))],
        plain={},
        answers=_answers(laid, said),
        links=links,
        style=style,
        policy=template.policy(style, script, answers=laid is not None),
    )
    if laid is None:
        return markup
    cells = laid.cells
    beyond = payload.beyond(cells, laid.run_id, "") if cells.held < len(cells.rows) else None
    return with_data(markup, script, laid, said, beyond)


def _answers(laid: Layout | None, said: list[Preview]) -> list[list[Preview | None]]:
    """Return what each agent says to each scenario in the page, in the order of the rows."""
    if laid is None:
        return []
    columns: list[list[Preview | None]] = []
    for other in laid.others:
        found = said_by(other)
        columns.append([found.get(row.id) for row in laid.cells.inside])
    columns.insert(laid.place, list(said))
    return [list(row) for row in zip(*columns, strict=True)]


def _ranking(agents: Sequence[Mapping[str, Any]]) -> list[tuple[str, float]]:
    """Return the agents that have a mean score, the best first."""
    found = [(one["name"], one["final"]["mean"]) for one in agents if one["final"] is not None]
    return sorted((each for each in found if each[1] is not None), key=lambda each: -each[1])


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
