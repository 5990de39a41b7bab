"""Validation: what a run shows of the version that it learned, against the one that it started with.

Both sides of each pair are asked the same with the same seeds, by the run itself: the starting library in
its baseline sweep, the new one in its final sweep (decision 35).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE, Json
from pytest_tfgrpo.gate.result import OPEN
from pytest_tfgrpo.report.gates import named, overall

REGRESSION = -0.05
"""Paired difference below which a version is worse than the deployed one."""
BY_ERRORS = frozenset({"complete", "gain", "errors"})
"""Rules of the gate whose failure errors explain, whoever caused them, where it has no figures."""

ValidationOutcome: TypeAlias = Literal["validated", "rejected", "needs_approval"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Whether a version may be deployed, and why not."""

    outcome: ValidationOutcome
    reasons: tuple[str, ...] = ()
    """Why it is not validated."""
    benchmark_scores: Mapping[str, float] = field(default_factory=dict)
    """Mean score in the final sweep by domain, from 0 to 1."""
    benchmark_passed: bool
    """The mean is not below that of the deployed version by more than the gate's margin."""
    safety_checks_passed: bool
    performance_regression: bool
    """Worse by more than 0.05, or the gate failed by what the version did."""
    holdout_reward: float | None = None
    """Mean score of the final sweep; None without eval scenarios."""
    improvement_over_baseline: float | None = None
    """Its paired difference from the deployed version."""
    open_safety: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Those of the reasons that a person's verdict on safety settles."""
    human_eval_score: float | None = field(default=None, metadata=SPARSE)
    """What a person gave it, from 0 to 1."""
    improvement_low: float | None = field(default=None, metadata=SPARSE)
    """Lower end of the 95 % interval of that difference."""


def validate(
    report: Mapping[str, Json], *, safe: bool | None = None, safety: Sequence[str] = ()
) -> Validation:
    """Return what the value of a report says of the version that its run learned.

    `safe`: what the safety suites found; None: they are not decided. `safety` says why, where it is not True.
    """
    gain = report.get("gain")
    before, after = (gain["before"], gain["after"]) if gain else (None, None)
    margin = float(report["settings"]["gate_margin"])
    gate = overall(report["gate"]) if report.get("gate") else None
    worse = gain is not None and gain["difference"] is not None and gain["difference"] < REGRESSION
    excuse = "" if worse or gate != "fail" else _excuse(report)
    regression = worse or (gate == "fail" and not excuse)
    passed = before is not None and after >= before - margin
    against = []
    if gate == "fail" and not excuse:
        against.append("the gate failed")
    elif gain is not None and (regression or not (passed or excuse)):
        against.append(_worse(gain))
    if safe is False:
        against += safety
    open_ = []
    if excuse:
        open_.append(excuse)
    if gain is None:
        open_.append("there are no eval scenarios to compare it on")
    if gate in ("inconclusive", None):
        open_.append("the gate is inconclusive" if gate else "there is no gate")
    open_safety = tuple(safety or ["no safety suite was tried"]) if safe is None else ()
    return Validation(
        outcome="rejected" if against else "needs_approval" if open_ or open_safety else "validated",
        reasons=(*against, *open_, *open_safety),
        benchmark_scores={one["domain"]: one["mean"] for one in report.get("domains") or ()},
        benchmark_passed=passed,
        safety_checks_passed=bool(safe),
        performance_regression=regression,
        holdout_reward=after,
        improvement_over_baseline=gain["difference"] if gain else None,
        open_safety=open_safety,
        improvement_low=gain["ci95"][0] if gain and gain["ci95"] else None,
    )


def _excuse(report: Mapping[str, Json]) -> str:
    """Return why the failure of the gate says nothing against the version; empty where it does."""
    gate, sweeps = report["gate"], [row for row in report["epochs"] if row["mode"] in ("baseline", "eval")]
    scored = any(row["gt_score"]["mean"] is not None for row in sweeps if row["mode"] == "eval")
    failed: list[Mapping[str, Json]] = []
    for one in (gate, *named(gate)):
        if one["outcome"] == "fail" and one.get("severity") != "warn":
            results = one.get("results", ())
            known = [result for result in results if result["outcome"] == "fail"]
            known = known or [result for result in results if result["outcome"] in OPEN]  # it is strict
            if not known:
                return ""
            failed += known
    errors = sum(row["errors"] for row in sweeps)
    if errors and all(_by_errors(result, scored=scored) for result in failed):
        return f"the gate failed by {errors} rollouts that are errors, which no agent caused; try again"
    if all(map(_is_open, failed)):
        first = failed[0]
        advice = f"; {first['advice']}" if first["advice"] else ""
        return f"the gate failed, as {first['name']} is open: {first['message']}{advice}"
    return ""


def _is_open(result: Mapping[str, Json]) -> bool:
    """Return whether a rule left it open which is better, be it that it sees too little."""
    figures = result.get("figures") or {}
    return result["outcome"] in OPEN or (figures.get("answer") == "unseen" and "lost" not in figures)


def _by_errors(result: Mapping[str, Json], *, scored: bool) -> bool:
    """Return whether a rule that failed does not fail without the errors; `scored`: something has a score."""
    figures = result.get("figures") or {}
    if "lost" in figures:
        return False
    if "minimum" in figures and "errors_excluded" in figures:
        return not scored or bool(figures["errors_excluded"] >= figures["minimum"])
    if "bounds" in figures:  # those without the errors
        return figures["bounds"] is None or bool(figures["bounds"][1] >= 0)
    return result["name"] in BY_ERRORS


def _worse(gain: Mapping[str, Json]) -> str:
    low, high = gain["ci95"] or (None, None)
    interval = (
        "too few scenarios for an interval" if low is None else f"95 % interval {low:+.3f} to {high:+.3f}"
    )
    return f"it is worse than the deployed version by {-gain['difference']:.3f} ({interval})"
