"""The dry run of an arena: the rollouts that it would take, and what they may cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_tfgrpo.arena.contestants.learned import Learned, Untrained
from pytest_tfgrpo.arena.final_sweep import sweep_request
from pytest_tfgrpo.arena.plan import ArenaPlan, fitted, training
from pytest_tfgrpo.arena.ring import questions
from pytest_tfgrpo.core.texts.text import line, money, plural, table, wrapped
from pytest_tfgrpo.engine.preparation.prepare import prepare
from pytest_tfgrpo.estimate.forecast import Forecast, forecast, rollouts_of
from pytest_tfgrpo.runs.job import Job


def dry_run(plan: ArenaPlan) -> Iterator[str]:
    """Yield what an arena would do; no call is made, and nothing is written."""
    parts = [part for name in plan.contestants if (part := _training(plan, name)) is not None]
    final = _sweep(plan)
    parts.append(("final sweep", final, final.phases[0].planned))
    found = [(name, rollouts, forecast(job, None)) for name, job, rollouts in parts]
    yield f"dry run: the actor {line(final.actor.name, 200)} was not called"
    yield (
        f"{plural(len(plan.split('train')), 'train scenario')}, {len(plan.split('dev'))} dev and "
        f"{len(plan.split('eval'))} eval; {plural(plan.budget_rollouts, 'rollout')} for each optimizer"
    )
    usd = [_most_usd(one) for _, _, one in found]
    rows = [[name, str(rollouts), _cost(cost)] for (name, rollouts, _), cost in zip(found, usd, strict=True)]
    known = [cost for cost in usd if cost is not None]
    total = sum(known) if len(known) == len(usd) else None
    rows.append(["total", str(sum(rollouts for _, rollouts, _ in found)), _cost(total)])
    yield from table(["", "rollouts at most", "cost at most"], rows)
    notes = dict.fromkeys(text for _, _, one in found for text in one.warnings)
    if any(_asks(plan, name) and _teaches(plan, name) for name in plan.contestants):
        notes["what an optimizer such as gepa asks the teacher is not counted"] = None
    for text in notes:
        yield from wrapped(f"warning: {text}", 80, hanging="  ")


def _sweep(plan: ArenaPlan) -> Job:
    """Return the final sweep of all sides, as one phase where no prompt is shared."""
    job, count = prepare(sweep_request(plan, len(plan.contestants))).job, len(plan.contestants)
    return replace(job, phases=(replace(plan.sweep, rollouts=plan.sweep.rollouts * count),))


def _asks(plan: ArenaPlan, name: str) -> bool:
    contestant = plan.contestants[name]
    return contestant is not None and not isinstance(contestant, Learned | Untrained)


def _teaches(plan: ArenaPlan, name: str) -> bool:
    contestant = plan.contestants[name]
    return contestant is not None and contestant.needs_teacher


def _training(plan: ArenaPlan, name: str) -> tuple[str, Job, int] | None:
    """Return the job of what a side trains, and its rollouts at most; None where it trains nothing."""
    settings = fitted(plan, plan.budget_rollouts)
    if isinstance(plan.contestants[name], Learned) and settings is not None:
        phases = training(plan, settings)
        job = prepare(plan.request(name, name, phases, settings=settings, optimizer=name)).job
        return name, job, rollouts_of(job)[1]
    if not _asks(plan, name):
        return None
    job = prepare(questions(plan, name)).job
    asked = len(plan.question.scenarios)
    phase = replace(plan.question, mode="eval", rollouts=-(-plan.budget_rollouts // asked))
    return name, replace(job, phases=(phase,)), plan.budget_rollouts


def _most_usd(found: Forecast) -> float | None:
    """Return the most that a part is expected to cost; None where that is unknown."""
    if found.free:
        return 0.0
    if found.declared is not None:
        return found.declared.get("usd")
    return None if found.total.usd is None else found.total.usd.high


def _cost(usd: float | None) -> str:
    return "unknown" if usd is None else money(usd)
