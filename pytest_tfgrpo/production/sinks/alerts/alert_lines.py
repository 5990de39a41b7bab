"""How the calls of alerts went, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.sinks.alerts.alert_state import AlertState


def alert_lines(state: AlertState) -> Iterator[str]:
    """Yield nothing where no alert was ever called, else how the calls went."""
    if not state.ok + state.failed:
        return
    failed = f", {state.failed} failed; the last: {line(state.last_failure, 300)}" if state.failed else ""
    yield from labelled("alerts", f"{plural(state.ok + state.failed, 'call')} of [alerts] command{failed}")
