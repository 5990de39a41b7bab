"""Costs: what a run used, by epoch, by purpose and by model, and what a lesson and a solved scenario cost.

A sum is over what is known; `unknown` counts the calls whose cost is unknown, never taken as 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import fsum

from pytest_tfgrpo.core.records import Frame, ModelCall, PhaseResult, Rollout, Run, Usage
from pytest_tfgrpo.core.report_blocks import (
    BudgetRow,
    CostBlock,
    EpochCost,
    LessonCost,
    ModelCost,
    PriceBlock,
    PriceRow,
    SolvedCost,
    Spent,
)
from pytest_tfgrpo.core.settings.runs import BUDGET_TOKENS, BUDGET_USD
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.passes import solved

PURPOSES = ("rollouts", "learning", "judge", "user")
KINDS = ("prompt", "completion", "reasoning", "cached")


class Sums:
    """What a number of rollouts and model calls used, added up."""

    __slots__ = ("calls", "costs", "failed", "tokens", "unknown", "usages")

    def __init__(self) -> None:
        """Start with nothing."""
        self.calls = self.failed = self.unknown = self.tokens = 0
        self.costs: list[float] = []
        self.usages: list[Usage] = []

    def add(self, call: Frame | ModelCall) -> None:
        """Add one model call."""
        self.calls += 1
        self.failed += call.error is not None
        self.tokens += call.tokens
        if call.usage is not None:
            self.usages.append(call.usage)
        if call.cost_usd is None:
            self.unknown += 1
        else:
            self.costs.append(call.cost_usd)

    def add_rollout(self, rollout: Rollout) -> None:
        """Add a rollout; where its cost is unknown, the frames whose cost is known count."""
        calls = [frame for frame in rollout.frames if frame.kind == "model"]
        self.calls += len(calls) or 1
        self.tokens += rollout.tokens
        self.failed += sum(f.error is not None for f in calls) if calls else rollout.status != "ok"
        self.usages += [frame.usage for frame in calls if frame.usage is not None]
        if rollout.cost_usd is not None:
            self.costs.append(rollout.cost_usd)
            return
        self.costs += [frame.cost_usd for frame in rollout.frames if frame.cost_usd is not None]
        self.unknown += max(1, sum(frame.cost_usd is None for frame in calls))

    def merge(self, other: Sums) -> None:
        """Add all that `other` has."""
        self.calls += other.calls
        self.failed += other.failed
        self.unknown += other.unknown
        self.tokens += other.tokens
        self.costs += other.costs
        self.usages += other.usages

    @property
    def usd(self) -> float | None:
        """Cost as far as it is known: 0 for no calls, None when that of none is known."""
        return fsum(self.costs) if self.costs or not self.calls else None

    def row(self) -> Spent:
        """Return the sums as a report has them."""
        return {
            "calls": self.calls,
            "failed": self.failed,
            "unknown": self.unknown,
            "tokens": self.tokens,
            "usd": self.usd,
        }

    def usage(self) -> dict[str, int] | None:
        """Return tokens by kind, over the calls whose server reported them; None if none did."""
        if not self.usages:
            return None
        return {kind: sum(getattr(usage, kind) for usage in self.usages) for kind in KINDS}


def of_run(run: Run) -> CostBlock:
    """Return the block `cost` of ``report.json``."""
    phases = [(result, _by_purpose(result)) for result in run.phases]
    total, learning = Sums(), Sums()
    for _, sums in phases:
        learning.merge(sums["learning"])
        for own in sums.values():
            total.merge(own)
    prices: list[PriceRow] = [{"model": use.model, "table": use.table} for use in run.prices]
    more: PriceBlock = {"prices": prices} if prices else {}
    return {
        **total.row(),
        "usage": total.usage(),
        "epochs": [_epoch(result, sums) for result, sums in phases],
        "models": _models(run),
        "lesson": _lesson(run, learning),
        "solved": _solved(run, total),
        "budget": _budget(run, total),
        **more,
    }


def _epoch(result: PhaseResult, sums: dict[str, Sums]) -> EpochCost:
    row: EpochCost = {
        "epoch": result.phase.epoch,
        "mode": result.phase.mode,
        "rollouts": sums["rollouts"].row(),
        "learning": sums["learning"].row(),
        "judge": sums["judge"].row(),
    }
    if sums["user"].calls:
        row["user"] = sums["user"].row()
    return row


def _by_purpose(result: PhaseResult) -> dict[str, Sums]:
    """Return the usage of each rollout and each further call of a phase, including failed ones."""
    sums = {purpose: Sums() for purpose in PURPOSES}
    for rollout in _rollouts(result):
        sums["rollouts"].add_rollout(rollout)
    for call in result.calls:
        sums[call.purpose if call.purpose in PURPOSES else "learning"].add(call)
    return sums


def _rollouts(result: PhaseResult) -> Iterator[Rollout]:
    groups = (group for group in result.with_dev if group.mode != "evidence")  # whoever made those has paid
    yield from (rollout for group in groups for rollout in group.rollouts)
    yield from result.loose


def _models(run: Run) -> list[ModelCost]:
    """Return what each model used, over all callers; a frame names it without protocol and endpoint."""
    by_name: defaultdict[str, Sums] = defaultdict(Sums)
    actor = run.identities.get("actor")
    asked = str(actor["name"]) if isinstance(actor, dict) else ""
    for result in run.phases:
        for frame in (frame for rollout in _rollouts(result) for frame in rollout.frames):
            if frame.kind == "model":
                own = f"{asked}@".startswith(f"openai:{frame.name}@")
                by_name[asked if own else frame.name].add(frame)
        for call in result.calls:
            by_name[call.model].add(call)
    return [{"model": name, **sums.row(), "usage": sums.usage()} for name, sums in sorted(by_name.items())]


def _lesson(run: Run, learning: Sums) -> LessonCost | None:
    """Return what a lesson cost in calls for learning; None when no call was made for it."""
    if not learning.calls:
        return None
    revisions = [result.revision for result in run.phases if result.revision is not None]
    lessons = sum(op.experience is not None for revision in revisions for op in revision.applied)
    return {"lessons": lessons, "usd_each": _each(learning, lessons)}


def _solved(run: Run, total: Sums) -> SolvedCost | None:
    """Return what a solved scenario cost in the final sweep, and what one more than before it cost in all.

    A scenario is solved by the share of its scored rollouts that passed every check, so that the numbers are
    pass@1 times the scenarios that have one.
    """
    sweeps = Sweeps(run)
    last, first = sweeps.after, sweeps.before
    if last is None:
        return None
    number = _number_solved(last)
    sweep = _by_purpose(last)["rollouts"]
    gained = None if first is None else number - _number_solved(first)
    return {
        "scenarios": number,
        "usd_each": _each(sweep, number),
        "gained": gained,
        "usd_each_gained": _each(total, gained or 0.0),
    }


def _number_solved(result: PhaseResult) -> float:
    shares = []
    for group in result.counted:
        scored = sum(score.gt_score is not None for score in group.scores)
        if scored:
            shares.append(solved(group) / scored)
    return fsum(shares)


def _each(sums: Sums, number: float) -> float | None:
    """Return the cost of one of `number`; None when there is none, or a part of the cost is unknown."""
    if number <= 0 or sums.unknown or sums.usd is None:
        return None
    return sums.usd / number


def _budget(run: Run, total: Sums) -> dict[str, BudgetRow] | None:
    """Return what of each budget is used, left, and used over it; None when none is set."""
    rows: dict[str, BudgetRow] = {}
    usd, tokens = BUDGET_USD.of(run.settings), BUDGET_TOKENS.of(run.settings)
    for unit, used, limit in (("usd", total.usd or 0.0, usd), ("tokens", total.tokens, tokens)):
        if limit is not None:
            left, over = max(0, limit - used), max(0, used - limit)
            rows[unit] = {"limit": limit, "used": used, "left": left, "over": over}
    return rows or None
