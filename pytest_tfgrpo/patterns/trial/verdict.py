"""The verdict of a trial: what two runs of one suite say of a pattern, by families."""

from __future__ import annotations

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.patterns.shelf.pattern import TrialOutcome, TrialResult
from pytest_tfgrpo.report.comparison.compare import versus

MIN_FAMILIES = 10
"""Fewer families settle nothing, whatever their scores."""
_OUTCOMES: dict[str | None, TrialOutcome] = {"better": "helps", "worse": "harms"}


def verdict(without: Run, with_pattern: Run) -> TrialResult:
    """Return what the runs without a pattern and with it show.

    It helps or harms only where the sign-flip test and the interval both say so at 5 %, with errors left out
    and with errors as 0, over ten families or more.
    """
    compared = versus(without, with_pattern)
    figures = compared["difference"]
    few = figures["families"] < MIN_FAMILIES
    low, high = figures["ci95"] or (None, None)
    costs = [compared[side]["total"]["usd"] for side in ("before", "after")]
    settling = compared["settling"] or {}
    return TrialResult(
        outcome="inconclusive" if few else _OUTCOMES.get(compared["claim"], "inconclusive"),
        gain=figures["difference"],
        low=low,
        high=high,
        scenarios=figures["n"],
        families=figures["families"],
        needed=settling.get("scenarios"),
        cost_usd=sum(costs) if all(cost is not None for cost in costs) else None,
        why=f"only {figures['families']} families, {MIN_FAMILIES} are needed"
        if few
        else "; ".join(compared["obstacles"]),
    )
