"""The block `sequential`: what a gate saved that was decided during the final sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings.gate import GATE_SEQUENTIAL
from pytest_tfgrpo.core.texts.text import line, plural, wrapped
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.early_stop import Sequential


def _value(at: BlockSources) -> Sequential | None:
    if not GATE_SEQUENTIAL.of(at.run.settings):
        return None
    from pytest_tfgrpo.gate.early_stop import reported

    foreign = at.verdict is not None and at.verdict.foreign_rules
    return reported(at.run, at.sweeps, gated=at.verdict is not None, foreign_rules=foreign)


def sequential_lines(report: Report, width: int) -> list[str]:
    """Return the lines about a sequential gate."""
    found = SEQUENTIAL.of(report)
    if not found:
        return []
    text = f"sequential gate  {plural(found['rollouts_saved'], 'rollout')} saved"
    if found["left_out"]:
        text += (
            f": gate already decided, {found['left_out']} of {found['scenarios']} eval "
            f"scenarios were not run; means and gain are over the {found['asked']} that were"
        )
    elif found["reason"]:
        text += f": {line(found['reason'], 200)}"
    return wrapped(text, width, hanging="  ")


SEQUENTIAL = ReportBlock("sequential", _value)
