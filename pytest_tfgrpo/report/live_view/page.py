"""The page of a run that goes on: a frame without figures, which its script requests and fills in."""

from __future__ import annotations

from pytest_tfgrpo.report.page import template

SCRIPTS = ("text.js", "live.js")


def live_page(task_id: str, run_id: str) -> str:
    """Return the page that follows a run; it requests ``state`` and ``names`` beside its own address."""
    style, script = template.style("live.css"), template.script(SCRIPTS)
    return template.fill(
        "live.html.j2",
        task_id=task_id,
        run_id=run_id,
        style=style,
        script=script,
        policy=template.policy(style, script, "connect-src 'self'; "),
    )
