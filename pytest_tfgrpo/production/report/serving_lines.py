"""What is served, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.report.figure_lines import labelled


def serving_lines(serving: Serving, waits: str = "") -> Iterator[str]:
    """Yield which versions users meet, since when, and what a ramp waits for."""
    since = f" since {serving.since}" if serving.since else ""
    yield from labelled("live", f"{serving.live}{since}")
    ramp = serving.ramp
    if ramp is None:
        return
    share = f"{ramp.version} meets {100.0 * ramp.share:g} % of new sessions"
    step = f"step {ramp.step + 1} of {len(ramp.shares)} since {ramp.since}"
    yield from labelled(serving.states[ramp.version], f"{share}, {step}")
    if ramp.held_for:
        yield from labelled("held by", f"{line(ramp.held_by) or 'the monitor'}: {line(ramp.held_for)}")
    elif waits:
        yield from labelled("waits for", line(waits))
