"""The block `headroom`: what learning could gain, and what the plan could show of it."""

from __future__ import annotations

from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock
from pytest_tfgrpo.runs.headroom import Headroom, headroom, headroom_text


def _value(at: BlockSources) -> Headroom | None:
    """Return the headroom; None before the first training groups, and where these were made elsewhere."""
    first = next((result for result in at.run.phases if result.phase.trains), None)
    return (
        None
        if first is None or not first.phase.asks
        else headroom(at.run.scenarios, at.run.settings, first.groups)
    )


HEADROOM = ReportBlock("headroom", _value, headroom_text)
