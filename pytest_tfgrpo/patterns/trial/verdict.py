"""The verdict of a trial: what two runs of one suite say of a pattern, by families."""

from __future__ import annotations

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.metrics.comparison import compare
from pytest_tfgrpo.metrics.significance import Claim, claim, p_of
from pytest_tfgrpo.patterns.shelf.pattern import TrialOutcome, TrialResult
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.suite.families import sweeps_of

MIN_FAMILIES = 10
"""Fewer families settle nothing, whatever their scores."""
_OUTCOMES: dict[str | None, TrialOutcome] = {"better": "helps", "worse": "harms"}


def verdict(without: Run, with_pattern: Run, looks: int = 1) -> TrialResult:
    """Return what the runs without a pattern and with it show.

    It helps or harms only where the sign-flip test and the interval both say so at 5 %, with errors left out
    and with errors as 0, over ten families or more. Who tries again until it helps finds help in the end: at
    the second of `looks` it helps at 2.5 %, and so on (Bonferroni).
    """
    compared = versus(without, with_pattern)
    found = compared["claim"]
    if found == "better" and looks > 1:
        found = _claim_again(without, with_pattern, looks)
    figures = compared["difference"]
    few = figures["families"] < MIN_FAMILIES
    low, high = figures["ci95"] or (None, None)
    costs = [compared[side]["total"]["usd"] for side in ("before", "after")]
    settling = compared["settling"] or {}
    return TrialResult(
        outcome="inconclusive" if few else _OUTCOMES.get(found, "inconclusive"),
        gain=figures["difference"],
        low=low,
        high=high,
        scenarios=figures["n"],
        families=figures["families"],
        needed=settling.get("scenarios"),
        cost_usd=sum(costs) if all(cost is not None for cost in costs) else None,
        why=f"{figures['families']} of the {MIN_FAMILIES} families that are needed"
        if few
        else "; ".join(compared["obstacles"]),
    )


def _claim_again(without: Run, with_pattern: Run, looks: int) -> Claim | None:
    rows = sweeps_of(without).rows_after, sweeps_of(with_pattern).rows_after
    readings = (compare(*rows), compare(*rows, errors_as_zero=True))
    return claim(*((one, p_of(one)) for one in readings), looks=looks)
