"""The block `sequential`: what a gate saved that was decided during the final sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings.gate import GATE_SEQUENTIAL
from pytest_tfgrpo.core.texts.text import line, plural, wrapped
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import Verdict


class Sequential(TypedDict):
    """What a sequential gate left out and saved, or why nothing."""

    scenarios: int
    asked: int
    left_out: int
    rollouts_saved: int
    reason: str


def _value(at: BlockSources) -> Sequential | None:
    sweep, before = at.sweeps.after, at.sweeps.before
    if not GATE_SEQUENTIAL.of(at.run.settings) or sweep is None:
        return None
    left_out = len(sweep.settled)
    control = before.phase.rollouts if before is not None and before.phase.concurrent else 0
    return {
        "scenarios": len(sweep.phase.scenarios),
        "asked": len(sweep.phase.scenarios) - left_out,
        "left_out": left_out,
        "rollouts_saved": left_out * (sweep.phase.rollouts + control),
        "reason": "" if left_out else _why_nothing(at.verdict),
    }


def _why_nothing(verdict: Verdict | None) -> str:
    """Return why no scenario was left out."""
    if verdict is None:
        return "no rule of the gate is set"
    return verdict.obstacle or "nothing was decided before the end"


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
