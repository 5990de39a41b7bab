"""What is served, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.deployment.monitor_state import NOTHING_SAID, MonitorState
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving
from pytest_tfgrpo.production.report.figure_lines import labelled


def serving_lines(serving: Serving, monitor: MonitorState = NOTHING_SAID) -> Iterator[str]:
    """Yield which versions users meet, since when, what a ramp waits for, and what cannot begin one."""
    since = f" since {serving.since}" if serving.since else ""
    yield from labelled("live", f"{serving.live}{since}")
    if serving.ramp is not None:
        yield from _ramp_lines(serving, serving.ramp, monitor.waits)
    for version, reason in monitor.skipped.items():
        yield from labelled("skipped", f"{version} cannot begin its ramp: {line(reason)}")


def _ramp_lines(serving: Serving, ramp: Ramp, waits: str) -> Iterator[str]:
    share = f"{ramp.version} meets {100.0 * ramp.share:g} % of new sessions"
    step = f"step {ramp.step + 1} of {len(ramp.shares)} since {ramp.since}"
    yield from labelled(serving.states[ramp.version], f"{share}, {step}")
    if ramp.held_for:
        yield from labelled("held by", f"{line(ramp.held_by) or 'the monitor'}: {line(ramp.held_for)}")
    elif waits:
        yield from labelled("waits for", line(waits, 1000))
