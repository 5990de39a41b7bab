"""The dry run of an arena: the rollouts and teacher calls that it would take, and what they may cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_tfgrpo.arena.contestants.gepa import MINIBATCH, Gepa, most_questions
from pytest_tfgrpo.arena.contestants.learned import Learned, Untrained
from pytest_tfgrpo.arena.contestants.system_texts import MAX_CHARS
from pytest_tfgrpo.arena.final_sweep import sweep_request
from pytest_tfgrpo.arena.plan import ArenaPlan, fitted, training
from pytest_tfgrpo.arena.ring import questions
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.agents import MAX_TOKENS
from pytest_tfgrpo.core.texts.text import line, money, plural, table, wrapped
from pytest_tfgrpo.engine.preparation.prepare import prepare
from pytest_tfgrpo.estimate import assumptions
from pytest_tfgrpo.estimate.forecast import Forecast, forecast, rollouts_of
from pytest_tfgrpo.estimate.ranges import Figures, Range, total
from pytest_tfgrpo.learning.optimizer.llm.critique import TASK
from pytest_tfgrpo.learning.optimizer.llm.transcript import SHOWN
from pytest_tfgrpo.runs.job import Job

REASONS = {
    "llm": "llm may have each attempt retold, each group studied and each answer repaired",
    "gepa": f"gepa may ask for a text after each minibatch of up to {MINIBATCH} rollouts",
}
"""Of the bound of teacher calls."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """What a side, or the final sweep, takes at most."""

    name: str
    rollouts: int
    teacher_calls: int
    usd: float | None
    """None: unknown."""
    warnings: tuple[str, ...]


def dry_run(plan: ArenaPlan) -> Iterator[str]:
    """Yield what an arena would do; no call is made, and nothing is written."""
    final = _sweep(plan)
    parts = [part for name in plan.contestants if (part := _training(plan, name)) is not None]
    parts.append(_part("final sweep", final, final.phases[0].planned, Figures(), 0))
    yield f"dry run: the actor {line(final.actor.name, 200)} was not called"
    yield (
        f"{plural(len(plan.split('train')), 'train scenario')}, {len(plan.split('dev'))} dev and "
        f"{len(plan.split('eval'))} eval; {plural(plan.budget_rollouts, 'rollout')} and at most "
        f"{plural(plan.budget_teacher_calls, 'teacher call')} for each optimizer"
    )
    known = [part.usd for part in parts if part.usd is not None]
    whole = _Part(
        name="total",
        rollouts=sum(part.rollouts for part in parts),
        teacher_calls=sum(part.teacher_calls for part in parts),
        usd=sum(known) if len(known) == len(parts) else None,
        warnings=(),
    )
    yield from table(
        ["at most", "rollouts", "teacher calls", "cost"],
        [[one.name, str(one.rollouts), str(one.teacher_calls), _cost(one.usd)] for one in (*parts, whole)],
    )
    for part in parts:
        if 0 < part.teacher_calls < plan.budget_teacher_calls and part.name in REASONS:
            yield from wrapped(f"teacher calls: {REASONS[part.name]}", 80, hanging="  ")
    for text in dict.fromkeys(text for part in parts for text in part.warnings):
        yield from wrapped(f"warning: {text}", 80, hanging="  ")


def _sweep(plan: ArenaPlan) -> Job:
    """Return the final sweep of all sides, as one phase where no prompt is shared."""
    job, count = prepare(sweep_request(plan, len(plan.contestants))).job, len(plan.contestants)
    return replace(job, phases=(replace(plan.sweep, rollouts=plan.sweep.rollouts * count),))


def _training(plan: ArenaPlan, name: str) -> _Part | None:
    """Return what a side trains; None where it trains nothing."""
    contestant, settings = plan.contestants[name], fitted(plan, plan.budget_rollouts)
    if isinstance(contestant, Learned) and settings is not None:
        phases = training(plan, settings)
        job = prepare(plan.request(name, name, phases, settings=settings, optimizer=name)).job
        return _part(name, job, rollouts_of(job)[1], _learning(job), plan.budget_teacher_calls)
    if contestant is None or isinstance(contestant, Learned | Untrained):
        return None
    job = prepare(questions(plan, name)).job
    asked = len(plan.question.scenarios)
    phase = replace(plan.question, mode="eval", rollouts=-(-plan.budget_rollouts // asked))
    job = replace(job, phases=(phase,))
    found = _reflection(plan, job, isinstance(contestant, Gepa)) if contestant.needs_teacher else Figures()
    return _part(name, job, plan.budget_rollouts, found, plan.budget_teacher_calls)


def _part(name: str, job: Job, rollouts: int, teacher: Figures, limit: int) -> _Part:
    """Return what a job takes; of the calls of a teacher no more than the limit are made."""
    found, most = forecast(job, None), teacher.calls.high
    usd, calls = _rollouts_usd(found), min(round(most), limit)
    if not found.free and calls and usd is not None:
        usd = None if teacher.usd is None else usd + teacher.usd.high * min(1.0, limit / most)
    return _Part(
        name=name,
        rollouts=rollouts,
        teacher_calls=calls,
        usd=usd,
        warnings=found.warnings,
    )


def _learning(job: Job) -> Figures:
    """Return what a learning run has its teacher do at most."""
    model = _teacher(job)
    if model is None:
        return Figures()
    return total(assumptions.learning(job, phase, model) for phase in job.phases if phase.trains)


def _reflection(plan: ArenaPlan, job: Job, is_gepa: bool) -> Figures:
    """Return what a contestant asks a teacher at most: the text that is to change, and some attempts."""
    model, most = _teacher(job), plan.budget_teacher_calls
    if is_gepa:
        most = most_questions(plan.scenarios, job.packs, plan.budget_rollouts)
    if model is None:
        return Figures(calls=Range(0, most))
    shown = MAX_CHARS + assumptions.INSTRUCTION_BYTES + MINIBATCH * (TASK + SHOWN)
    return model.calls(Range(0, most), Range(500, shown))


def _teacher(job: Job) -> assumptions.Model | None:
    """Return the model that teaches; None where the optimizer names none."""
    name = job.optimizer.identity.get("model")
    completer = job.models.get(name) if isinstance(name, str) else None
    if completer is None:
        return None
    limit = completer.identity.get("max_tokens") or MAX_TOKENS.of(job.settings)
    return assumptions.Model(price=completer.price, max_tokens=int(limit))


def _rollouts_usd(found: Forecast) -> float | None:
    """Return the most that rollouts and whoever judges them are expected to cost; None where unknown."""
    if found.free:
        return 0.0
    if found.declared is not None:
        return found.declared.get("usd")
    usd = total(part.figures for part in found.parts if part.purpose != "learning").usd
    return None if usd is None else usd.high


def _cost(usd: float | None) -> str:
    return "unknown" if usd is None else money(usd)
