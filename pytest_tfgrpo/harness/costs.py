"""Costs: what a run used, by epoch, by purpose and by model, and what a lesson and a solved scenario cost.

A sum is over what is known; `unknown` counts the calls whose cost nobody can tell, never taken for 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.records import Frame, Group, Json, ModelCall, PhaseResult, Rollout, Run, Usage
from pytest_tfgrpo.harness.comparison import baseline_sweep, final_sweep
from pytest_tfgrpo.harness.metrics import solved

Purpose: TypeAlias = Literal["rollouts", "learning", "judge"]
PURPOSES: tuple[Purpose, ...] = ("rollouts", "learning", "judge")
KINDS = ("prompt", "completion", "reasoning", "cached")


@dataclass(frozen=True, kw_only=True, slots=True)
class Expense:
    """What a rollout, one call of it, or one call for learning or judging used."""

    purpose: Purpose
    model: str = ""
    calls: int = 1
    """Model calls; a rollout whose actor tells of none counts as one."""
    failed: int = 0
    """Calls that came to nothing."""
    unknown: int = 0
    """Calls whose cost is unknown."""
    tokens: int = 0
    usd: float | None = None
    """Cost as far as it is known; None when nothing of it is."""
    usages: tuple[Usage, ...] = ()


def of_run(run: Run) -> dict[str, Json]:
    """Return the block `cost` of ``report.json``."""
    by_epoch = [(result, list(expenses(result))) for result in run.phases]
    total = [expense for _, spent in by_epoch for expense in spent]
    return {
        **_sums(total),
        "usage": _usage(total),
        "epochs": [
            {
                "epoch": result.phase.epoch,
                "mode": result.phase.mode,
                **{purpose: _sums(_for(purpose, spent)) for purpose in PURPOSES},
            }
            for result, spent in by_epoch
        ],
        "models": _models(run),
        "lesson": _lesson(run, _for("learning", total)),
        "solved": _solved(run, total),
        "budget": _budget(run, total),
    }


def loose(
    groups: Iterable[Group], paid: Iterable[Rollout], abandoned: Iterable[Rollout]
) -> tuple[Rollout, ...]:
    """Return the rollouts that were paid for and are in no group, in order; those abandoned come last."""
    grouped = {rollout.rollout_id for group in groups for rollout in group.rollouts}
    own = (rollout for rollout in paid if rollout.rollout_id not in grouped)
    return tuple(r for part in (own, abandoned) for r in sorted(part, key=lambda r: r.rollout_id))


def expenses(result: PhaseResult) -> Iterator[Expense]:
    """Yield what each rollout and each further call of a phase used, also those that came to nothing."""
    for rollout in _rollouts(result):
        yield _of_rollout(rollout)
    for call in result.calls:
        yield _of_call(call)


def _rollouts(result: PhaseResult) -> Iterator[Rollout]:
    yield from (rollout for group in result.groups for rollout in group.rollouts)
    yield from result.loose


def _of_rollout(rollout: Rollout) -> Expense:
    """Return what a rollout used; of one whose cost is unknown, the frames whose cost is known count."""
    calls = [frame for frame in rollout.frames if frame.kind == "model"]
    costs = [frame.cost_usd for frame in rollout.frames]
    unknown = max(1, costs.count(None)) if rollout.cost_usd is None else 0
    return Expense(
        purpose="rollouts",
        calls=max(1, len(calls)),
        failed=sum(frame.error is not None for frame in calls) if calls else int(rollout.status != "ok"),
        unknown=unknown,
        tokens=rollout.tokens,
        usd=_known(costs) if unknown else rollout.cost_usd,
        usages=tuple(frame.usage for frame in calls if frame.usage is not None),
    )


def _of_call(call: ModelCall) -> Expense:
    return Expense(
        purpose="judge" if call.purpose == "judge" else "learning",
        model=call.model,
        failed=int(call.error is not None),
        unknown=int(call.cost_usd is None),
        tokens=call.tokens,
        usd=call.cost_usd,
        usages=() if call.usage is None else (call.usage,),
    )


def _of_frame(frame: Frame) -> Expense:
    return Expense(
        purpose="rollouts",
        model=frame.name,
        failed=int(frame.error is not None),
        unknown=int(frame.cost_usd is None),
        tokens=frame.tokens,
        usd=frame.cost_usd,
        usages=() if frame.usage is None else (frame.usage,),
    )


def _known(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if known else None


def _for(purpose: Purpose, spent: Iterable[Expense]) -> list[Expense]:
    return [expense for expense in spent if expense.purpose == purpose]


def _sums(spent: Iterable[Expense]) -> dict[str, Json]:
    """Return the sums of some expenses; no calls cost 0, calls of unknown cost alone cost None."""
    known = list(spent)
    return {
        "calls": sum(expense.calls for expense in known),
        "failed": sum(expense.failed for expense in known),
        "unknown": sum(expense.unknown for expense in known),
        "tokens": sum(expense.tokens for expense in known),
        "usd": _known(expense.usd for expense in known) if known else 0.0,
    }


def _usage(spent: Iterable[Expense]) -> dict[str, int] | None:
    """Return tokens by kind, over the calls whose server told them; None when none did."""
    usages = [usage for expense in spent for usage in expense.usages]
    if not usages:
        return None
    return {kind: sum(getattr(usage, kind) for usage in usages) for kind in KINDS}


def _models(run: Run) -> list[dict[str, Json]]:
    """Return what each model used, over all that asked it."""
    by_name: dict[str, list[Expense]] = {}
    for result in run.phases:
        frames = (frame for rollout in _rollouts(result) for frame in rollout.frames)
        asked = [_of_frame(frame) for frame in frames if frame.kind == "model"]
        for expense in (*asked, *map(_of_call, result.calls)):
            by_name.setdefault(expense.model, []).append(expense)
    return [
        {"model": name, **_sums(spent), "usage": _usage(spent)} for name, spent in sorted(by_name.items())
    ]


def _lesson(run: Run, learning: list[Expense]) -> dict[str, Json] | None:
    """Return what a lesson cost in calls for learning; None when no call was made for it."""
    if not learning:
        return None
    revisions = [result.revision for result in run.phases if result.revision is not None]
    lessons = sum(op.experience is not None for revision in revisions for op in revision.applied)
    return {"lessons": lessons, "usd_each": _each(_sums(learning), lessons)}


def _solved(run: Run, total: list[Expense]) -> dict[str, Json] | None:
    """Return what a solved scenario cost in the final sweep, and what one more than before it cost in all.

    A scenario is solved by the share of its scored rollouts that passed every check, so that the numbers are
    pass@1 times the scenarios that have one.
    """
    last, first = final_sweep(run), baseline_sweep(run)
    if last is None:
        return None
    number = _number_solved(last)
    gained = None if first is None else number - _number_solved(first)
    return {
        "scenarios": number,
        "usd_each": _each(_sums(map(_of_rollout, _rollouts(last))), number),
        "gained": gained,
        "usd_each_gained": _each(_sums(total), gained or 0.0),
    }


def _number_solved(result: PhaseResult) -> float:
    shares = []
    for group in result.groups:
        scored = sum(score.gt_score is not None for score in group.scores)
        if scored:
            shares.append(solved(group) / scored)
    return fsum(shares)


def _each(sums: dict[str, Json], number: float) -> float | None:
    """Return the cost of one of `number`; None when there is none, or a part of the cost is unknown."""
    if number <= 0 or sums["unknown"] or sums["usd"] is None:
        return None
    return float(sums["usd"] / number)


def _budget(run: Run, total: list[Expense]) -> dict[str, Json] | None:
    """Return what of each budget is used, left, and used over it; None when none is set."""
    sums, rows = _sums(total), {}
    for unit in ("usd", "tokens"):
        limit = run.settings.get(f"budget_{unit}")
        if limit is not None:
            used = sums[unit] or 0
            rows[unit] = {
                "limit": limit,
                "used": used,
                "left": max(0, limit - used),
                "over": max(0, used - limit),
            }
    return rows or None
