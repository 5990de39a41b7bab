"""What is served, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.deployment.serving import Serving


def share_text(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100.0 * share:g} %"


def serving_lines(serving: Serving) -> Iterator[str]:
    """Yield which versions users meet, and since when."""
    since = f" since {serving.since}" if serving.since else ""
    yield f"live       {serving.live}{since}"
    ramp = serving.ramp
    if ramp is None:
        return
    yield (
        f"{serving.states[ramp.version]:10} {ramp.version} meets {share_text(ramp.share)} of new sessions, "
        f"step {ramp.step + 1} of {len(ramp.shares)} since {ramp.since}"
    )
    if ramp.held_for:
        yield f"           held by {line(ramp.held_by) or 'the monitor'}: {line(ramp.held_for)}"
