"""Resumption: what an interrupted run has on file is counted, and taken from there instead of made again.

This holds for single rollouts, for groups that were scored, and for phases that had ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout
from pytest_tfgrpo.engine.attempts.stage import KnownAnswer
from pytest_tfgrpo.engine.observers import Observer, Record, tell_group
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd, interrupted
from pytest_tfgrpo.protocols import as_metered
from pytest_tfgrpo.runs.journal.journal_contents import finished
from pytest_tfgrpo.runs.schedule import group_id

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import Slot
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger
    from pytest_tfgrpo.engine.lineup import Lineup
    from pytest_tfgrpo.runs.job import Job
    from pytest_tfgrpo.runs.journal.stored_groups import GroupPlace
    from pytest_tfgrpo.sandbox.workspace import Workspace

GLIMPSE = 100
"""Groups on file after which the event loop may do something else."""


def begin_budget(job: Job, warn: Callable[[str], None]) -> None:
    """Begin the budget of a run, which has paid for what it resumes."""
    budget = job.budget
    budget.begin(job.actor.bound(1))
    for rollout in chain(job.resumed.rollouts.values(), job.resumed.abandoned):
        budget.spend(rollout)
    cost = job.resumed.settled_cost
    budget.spend_all(usd=cost.usd, tokens=cost.tokens, unknown=cost.unknown)
    for call in job.resumed.calls.values():
        budget.spend_call(call)
    if budget.warning and as_metered(job.actor) is None:
        warn(budget.warning)


def finished_steps(job: Job, steps: Sequence[Sequence[Phase]]) -> list[PhaseResult]:
    """Return what the first steps came to that ended before the run was resumed.

    A final sweep is no such step: its pairs, its early end and its extension are gone through again.
    """
    resumed = job.resumed
    first = [
        phases[0] for phases in takewhile(lambda phases: len(phases) == 1 and phases[0].mode != "eval", steps)
    ]
    done = list(takewhile(resumed.is_finished, first))
    results = finished(resumed, done) if done else {}
    return [results[phase.epoch] for phase in done]


async def repeat_phase(result: PhaseResult, context: RunContext) -> RunEnd:
    """Go through the groups of a phase that had ended."""
    groups = chain(result.groups, result.dev)
    try:
        await repeat_groups(groups, context, tell=context.observe if context.observe.retell else None)
    except asyncio.CancelledError:
        return interrupted()
    return COMPLETE


def places_of_settled(job: Job, phases: Sequence[Phase]) -> dict[str, GroupPlace]:
    """Return where the groups of some phases are that a resumed run takes as they are, by id."""
    settled = job.resumed.settled_groups
    if settled is None:
        return {}
    return settled.places(group_id(job.run_id, phase, id_) for phase in phases for id_ in phase.scenarios)


async def repeat_settled(groups: Mapping[str, Group], ids: Iterable[str], context: RunContext) -> None:
    """Write the metrics of the groups of some ids, and count and pass them on if the run retells."""

    def tell(record: Record) -> None:
        if isinstance(record, Rollout):
            context.gauge.finish(record)
        elif isinstance(record, Group):
            context.gauge.score(record)
        context.observe(record)

    await repeat_groups((groups[id_] for id_ in ids), context, tell=tell if context.observe.retell else None)


async def repeat_groups(groups: Iterable[Group], context: RunContext, tell: Observer | None) -> None:
    """Write the metrics of groups that were scored before the run was resumed, and call `tell` with them."""
    for n, group in enumerate(groups):
        context.writer.metrics(group)
        if tell is not None:
            tell_group(group, tell)
        if n % GLIMPSE == 0:
            await asyncio.sleep(0)


def note_answered(groups: Iterable[Group], context: RunContext, lineup: Lineup) -> None:
    """Let the breaker know a rollout of groups on file that worked."""
    for group in groups:
        first = group.rollouts[0]
        if first.status == "ok":
            slot = lineup.slot(first.scenario_id)
            if slot.phase.asks:
                context.breaker.know(slot, answered=True)
            return


class Journaled:
    """The rollouts of a cohort that a resumed run has on file."""

    def __init__(self, context: RunContext, lineup: Lineup, ledger: Ledger) -> None:
        self._context, self._lineup, self._ledger = context, lineup, ledger
        self._resumed = context.job.resumed

    def find(self, slot: Slot) -> KnownAnswer | None:
        """Return what is on file; keeps of what cannot be taken only what it cost."""
        if (torn := self._lineup.torn.pop(slot.rollout_id, None)) is not None:
            self._ledger.abandon(torn)
        recorded = self._resumed.rollouts.get(slot.rollout_id)
        if recorded is None:
            return None
        left = self._left(slot, recorded)
        if left is None:
            self._ledger.abandon(recorded)
            return None
        if slot.phase.asks:
            self._context.breaker.know(slot, recorded.status == "ok")
        return KnownAnswer(recorded, left, on_file=True)

    def _left(self, slot: Slot, rollout: Rollout) -> Workspace | None:
        """Return the workspace that a rollout on file left; None when it still had to be looked at."""
        scenario = slot.question.scenario
        waits = rollout.status == "ok" and scenario.checker is not None
        if not waits or rollout.rollout_id in self._resumed.checker_results:
            return slot.call.workspace
        if scenario.fixtures is not None:  # its world is gone, which the test function looks at
            return None
        return self._context.workspaces.left(slot.rollout_id, *self._context.job.made_of(scenario))
