"""The block `low`: eval scenarios of a plain run below the setting ``min_score``."""

from __future__ import annotations

from typing import TypedDict

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings import sets_gate
from pytest_tfgrpo.core.settings.gate import MIN_SCORE
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock

SHOWN = 10
"""Scenarios that are named before the rest is counted."""


class LowScenario(TypedDict):
    """A scenario and its mean."""

    scenario: str
    mean: float


def _value(at: BlockSources) -> list[LowScenario] | None:
    """Return the scenarios that set no ``min_score`` of their own, lowest first; None but of a plain run."""
    run, rows = at.run, at.sweeps.rows_after
    if not run.is_plain or not sets_gate(run.settings):
        return None
    least = MIN_SCORE.of(run.settings)
    means = {s.id: rows[s.id].mean() for s in run.scenarios if s.min_score is None and s.id in rows}
    found: list[LowScenario] = [
        {"scenario": id_, "mean": mean} for id_, mean in means.items() if mean is not None and mean < least
    ]
    return sorted(found, key=lambda row: row["mean"])


def low(report: Report, *, every: bool = False) -> str:
    """Return the scenarios in words, some of them unless `every` is set; empty without any."""
    rows = LOW.of(report)
    if not rows:
        return ""
    shown = rows if every else rows[:SHOWN]
    named = ", ".join(f"{line(row['scenario'], 60)} {row['mean']:.3f}" for row in shown)
    more = f" and {len(rows) - len(shown)} more" if len(shown) < len(rows) else ""
    swept = sum(row["groups"] for row in report["epochs"] if row["mode"] == "eval")
    least = MIN_SCORE.of(report["settings"])
    return f"{len(rows)} of {swept} eval scenarios below min_score = {least:g}: {named}{more}"


LOW = ReportBlock("low", _value, caveat=False)
