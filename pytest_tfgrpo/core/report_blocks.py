"""The body of a report, as ``report.schema.json`` describes it; for mypy, nothing runs here.

The other keys are those of the blocks, each with its type in its own file.

An interval `ci95` is [low, high], null where too little is known. Shares and p lie in [0, 1].
"""
# ruff: noqa: UP013 - one line a block

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from pytest_tfgrpo.core.records import Mode

Counts = dict[str, int]
Bounds = Sequence[float] | None
Share = float | None

# fmt: off
SummedQuantity = TypedDict("SummedQuantity", {"n": int, "sum": float | None, "mean": float | None})
ScoreQuantity = TypedDict("ScoreQuantity", {"n": int, "sum": float | None, "mean": Share, "ci95": Bounds})
Latency = TypedDict("Latency", {
    "n": int, "sum": float | None, "mean": float | None, "p50": float | None, "p95": float | None})
ToolUse = TypedDict("ToolUse", {
    "tool": str, "calls": int, "tokens": SummedQuantity, "cost_usd": SummedQuantity,
    "latency_ms": SummedQuantity})
Changes = TypedDict("Changes", {"added": int, "updated": int, "removed": int, "in_force": int})
DevWork = TypedDict("DevWork", {
    "rollouts": int, "errors": int, "groups": int, "tokens": SummedQuantity, "cost_usd": SummedQuantity})
MetricFigures = TypedDict("MetricFigures", {
    "n": int, "sum": float | None, "mean": Share, "ci95": Bounds, "domains": dict[str, ScoreQuantity],
    "unit": NotRequired[str], "better": NotRequired[Literal["higher", "lower"]]})
EpochRow = TypedDict("EpochRow", {
    "epoch": int, "mode": Mode, "temperature": float, "rollouts": int, "errors": int, "groups": int,
    "informative_groups": int, "gt_score": ScoreQuantity, "pass_at_1": Share, "pass_at_g": Share,
    "experiences": Changes, "tokens": SummedQuantity, "cost_usd": SummedQuantity, "latency_ms": Latency,
    "tools": list[ToolUse], "metrics": NotRequired[dict[str, MetricFigures]],
    "metrics_left_out": NotRequired[int], "shared": NotRequired[int],
    "shared_rollouts": NotRequired[int], "total_reward": NotRequired[ScoreQuantity],
    "dev": NotRequired[DevWork]})

ComparisonFigures = TypedDict("ComparisonFigures", {
    "n": int, "families": int, "just_these": bool, "before": Share, "after": Share,
    "difference": float | None, "ci95": Bounds, "method": str, "detectable": float | None})
MetricChange = TypedDict("MetricChange", {
    "name": str, "n": int, "families": int, "just_these": bool, "before": Share, "after": Share,
    "difference": float | None, "ci95": Bounds, "method": str, "detectable": float | None,
    "unit": str, "better": Literal["higher", "lower"]})
PlannedSweep = TypedDict("PlannedSweep", {
    "scenarios": int, "rollouts": int, "spread": str, "detectable": float | None})
GainClaim = TypedDict("GainClaim", {
    "looks": int, "level": float, "p": Share, "side": Literal["better", "worse"] | None,
    "equal_within": NotRequired[float | None], "over_nothing": NotRequired[Literal["better"]]})
ReferenceBlock = TypedDict("ReferenceBlock", {
    "name": str, "kind": Literal["library", "packs", "placebo"], "stamp": str})
Control = TypedDict("Control", {
    "asked": Literal["concurrent", "early"], "shared": int, "drift": ComparisonFigures | None,
    "reference": NotRequired[ReferenceBlock]})
PlaceboChange = TypedDict("PlaceboChange", {
    "what": str, "before": float | None, "placebo": float | None, "after": float | None})
PlaceboBlock = TypedDict("PlaceboBlock", {
    "beside": str, "total": float | None, "possible": int, "impossible": int,
    "over": ComparisonFigures, "p": Share, "level": float,
    "side": Literal["better", "worse"] | None, "gain": ComparisonFigures,
    "gain_side": Literal["better", "worse"] | None, "changed": list[PlaceboChange]})
Gain = TypedDict("Gain", {
    "n": int, "families": int, "just_these": bool, "before": Share, "after": Share,
    "difference": float | None, "ci95": Bounds, "method": str, "detectable": float | None,
    "errors_as_zero": ComparisonFigures | None, "planned": PlannedSweep, "claim": NotRequired[GainClaim],
    "control": NotRequired[Control]})
DomainRow = TypedDict("DomainRow", {
    "domain": str, "scenarios": int, "mean": Share, "gain": ComparisonFigures | None, "p": Share,
    "p_adjusted": Share, "claim": Literal["better", "worse"] | None})
Regression = TypedDict("Regression", {
    "scenario": str, "domain": str, "before": Share, "after": Share, "difference": float,
    "flaky": NotRequired[bool]})
ScenarioEpoch = TypedDict("ScenarioEpoch", {
    "epoch": int, "mode": Mode, "mean": Share, "n": int, "errors": int})
ScenarioBlock = TypedDict("ScenarioBlock", {
    "id": str, "domain": str, "split": str, "source": str, "stamp": str, "truth": NotRequired[str],
    "epochs": list[ScenarioEpoch]})


Earned = TypedDict("Earned", {"gt_score": NotRequired[float], "total_reward": NotRequired[float]})
Lesson = TypedDict("Lesson", {
    "id": str, "domain": str, "polarity": str, "text": str, "epoch": int, "groups": int,
    "gt_score": NotRequired[float], "total_reward": NotRequired[float], "rollouts": int, "actor": str,
    "parents": list[str], "flags": NotRequired[list[str]]})
RefusedLesson = TypedDict("RefusedLesson", {"code": str, "text": str, "reason": str, "epoch": int, "n": int})
LibraryBlock = TypedDict("LibraryBlock", {
    "start": str, "hash": str, "groups": int, "informative_groups": int, "lesson_groups": int,
    "refused": Counts, "refusals": NotRequired[list[RefusedLesson]], "failures": Counts,
    "lessons": list[Lesson]})
TriedLesson = TypedDict("TriedLesson", {
    "id": str, "domain": str, "polarity": str, "text": str, "fate": str, "value": float, "sd": float,
    "helps": float, "included": int, "left_out": int})
RejectedLesson = TypedDict("RejectedLesson", {
    "id": str, "domain": str, "polarity": str, "text": str, "groups": int,
    "gt_score": NotRequired[float], "total_reward": NotRequired[float]})
Rejected = TypedDict("Rejected", {
    "kind": str, "targets": list[str], "reason": str, "lesson": RejectedLesson | None})
AcceptedEpoch = TypedDict("AcceptedEpoch", {
    "epoch": int, "verdict": str, "note": str, "kept": int, "rejected": list[Rejected], "rollouts": int,
    "errors": int, "gain": float | None, "gain_sd": float | None, "unseen": int, "unseen_gain": float | None,
    "unseen_sd": float | None, "hit_rate": Share,
    "lessons": list[TriedLesson]})
AcceptanceBlock = TypedDict("AcceptanceBlock", {
    "rule": str, "margin": float | None, "alpha": float | None, "scenarios": int,
    "epochs": list[AcceptedEpoch]})
EffectRow = TypedDict("EffectRow", {
    "id": str, "domain": str, "polarity": str, "text": str, "in_force": bool, "effect": float | None,
    "shrunken": float | None, "ci95": Bounds, "p": Share, "p_adjusted": Share, "included": int,
    "left_out": int, "scenarios": int, "verdict": str})
AttributionBlock = TypedDict("AttributionBlock", {
    "lesson_dropout": float, "groups": int, "earlier_groups": int, "unread": list[str], "errors": int,
    "estimated": int, "lessons": list[EffectRow]})

Opinions = TypedDict("Opinions", {"opinions": int, "no_verdict": int, "vote_agreement": Share})
Calibration = TypedDict("Calibration", {
    "opinions": int, "no_verdict": int, "vote_agreement": Share, "n": int, "agreement": Share,
    "ci95": Bounds, "kappa": float | None, "bias": float | None, "rank_correlation": float | None})


class DomainCalibration(Calibration):
    """The calibration in one domain."""

    domain: str


JudgeBlock = TypedDict("JudgeBlock", {
    "model": str | None, "votes": int | None, "opinions": int, "no_verdict": int, "vote_agreement": Share,
    "calibration": Calibration | None, "domains": list[DomainCalibration]})

LabelledArm = TypedDict("LabelledArm", {
    "arm": str, "n": int, "agreement": Share, "ci95": Bounds, "bias": float | None})
LabelsBlock = TypedDict("LabelsBlock", {
    "seed": int, "asked": int, "labelled": int, "tasks": int, "used": int, "families": int, "skipped": int,
    "judged": int, "judge_gain": float, "gain": float | None, "ci95": Bounds, "correction": float | None,
    "correction_ci95": Bounds, "just_these": bool, "arms": list[LabelledArm], "reads": list[int],
    "level": float, "claim": Literal["better", "worse"] | None})

Spent = TypedDict("Spent", {
    "calls": int, "failed": int, "unknown": int, "tokens": int, "usd": float | None})
EpochCost = TypedDict("EpochCost", {
    "epoch": int, "mode": Mode, "rollouts": Spent, "learning": Spent, "judge": Spent,
    "user": NotRequired[Spent]})
ModelCost = TypedDict("ModelCost", {
    "model": str, "calls": int, "failed": int, "unknown": int, "tokens": int, "usd": float | None,
    "usage": Counts | None})
LessonCost = TypedDict("LessonCost", {"lessons": int, "usd_each": float | None})
SolvedCost = TypedDict("SolvedCost", {
    "scenarios": float, "usd_each": float | None, "gained": float | None, "usd_each_gained": float | None})
PriceRow = TypedDict("PriceRow", {"model": str, "table": str})
BudgetRow = TypedDict("BudgetRow", {"limit": float, "used": float, "left": float, "over": float})
PriceBlock = TypedDict("PriceBlock", {"prices": NotRequired[list[PriceRow]]})
CostBlock = TypedDict("CostBlock", {
    "calls": int, "failed": int, "unknown": int, "tokens": int, "usd": float | None, "usage": Counts | None,
    "epochs": list[EpochCost], "models": list[ModelCost], "lesson": LessonCost | None,
    "solved": SolvedCost | None, "budget": dict[str, BudgetRow] | None,
    "prices": NotRequired[list[PriceRow]]})

FailureExample = TypedDict("FailureExample", {"rollout": str, "scenario": str, "index": int})
FailureCluster = TypedDict("FailureCluster", {
    "key": str, "label": str, "n": int, "before": NotRequired[int], "passed": NotRequired[int],
    "scenarios": list[str], "common": list[str], "example": FailureExample})
FailureView = TypedDict("FailureView", {
    "clusters": list[FailureCluster], "more": int, "more_rollouts": int})
FailuresBlock = TypedDict("FailuresBlock", {
    "sweep": str, "rollouts": int, "failed": int, "scenarios": int, "failed_before": int | None,
    "views": dict[str, FailureView]})
RuleFinding = TypedDict("RuleFinding", {
    "name": str, "outcome": str, "message": str, "advice": str, "figures": Mapping[str, Any]})
GateBlock = TypedDict("GateBlock", {
    "outcome": str, "results": list[RuleFinding], "strict": bool, "gates": NotRequired[list["GateBlock"]],
    "name": NotRequired[str], "severity": NotRequired[str], "scenarios": NotRequired[int],
    "baseline": NotRequired[str], "margin": NotRequired[float]})

Report = TypedDict("Report", {
    "schema": str, "run_id": str, "task_id": str, "actor": NotRequired[str], "status": str, "reason": str,
    "started_at": str, "finished_at": str, "partial_selection": bool, "files": str, "epochs": list[EpochRow],
    "gain": Gain | None, "domains": list[DomainRow], "regressions": list[Regression],
    "scenarios": list[ScenarioBlock], "faults": dict[str, Counts], "failures": NotRequired[FailuresBlock],
    "library": LibraryBlock, "attribution": AttributionBlock | None, "judge": JudgeBlock | None,
    "labels": NotRequired[LabelsBlock], "acceptance": NotRequired[AcceptanceBlock | None], "cost": CostBlock,
    "gate": GateBlock | None, "settings": dict[str, Any], "stamps": dict[str, str],
    "versions": dict[str, str], "warnings": list[str], "sections": list[str]})
# fmt: on
