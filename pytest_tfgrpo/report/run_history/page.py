"""The page over the runs of a task: one file, readable without scripts; equal runs give an equal page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.report.page import template
from pytest_tfgrpo.report.run_history.chart import MOST, charts
from pytest_tfgrpo.report.run_history.past_runs import PastRun, agents, by_build, short, span, suites

SCRIPTS = ("text.js", "sortable_table.js", "run_history.js")


def history_page(task_id: str, runs: Sequence[PastRun], links: Mapping[str, str]) -> str:
    """Return the page; `runs` are oldest first, `links` lead to the pages of runs by id."""
    style, script = template.style("run_history.css"), template.script(SCRIPTS)
    counted = [run for run in runs if run.counts]
    return template.fill(
        "run_history.html.j2",
        task_id=task_id,
        runs=runs[::-1],
        counted=counted,
        latest=counted[-1] if counted else None,
        builds=by_build(runs),
        charts=charts(runs),
        not_drawn=max(0, len(counted) - MOST),
        suites=suites(runs),
        agents=agents(runs),
        links=links,
        short=short,
        span=span,
        style=style,
        script=script,
        policy=template.policy(style, script),
    )
