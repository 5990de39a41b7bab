"""Settled groups: those that were scored before a run was resumed are taken as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.records import Group, Phase, Rollout
from pytest_tfgrpo.harness.engine.observers import Observer, Record, tell_group
from pytest_tfgrpo.harness.run.schedule import group_id

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.engine.context import RunContext
    from pytest_tfgrpo.harness.engine.lineup import Lineup
    from pytest_tfgrpo.harness.run.job import Job
    from pytest_tfgrpo.harness.run.stored_groups import GroupPlace

GLIMPSE = 100
"""Groups on file after which the event loop may do something else."""


def places_of_settled(job: Job, phases: Sequence[Phase]) -> dict[str, GroupPlace]:
    """Return where the groups of some phases are that a resumed run takes as they are, by id."""
    settled = job.resumed.settled_groups
    if settled is None:
        return {}
    return settled.places(group_id(job.run_id, phase, id_) for phase in phases for id_ in phase.scenarios)


async def repeat_settled(groups: Mapping[str, Group], ids: Iterable[str], context: RunContext) -> None:
    """Count the groups of some ids, which are taken as they are, and tell them unless nobody wants that."""

    def tell(record: Record) -> None:
        if isinstance(record, Rollout):
            context.gauge.finish(record)
        elif isinstance(record, Group):
            context.gauge.score(record)
        context.observe(record)

    await repeat_groups((groups[id_] for id_ in ids), context, tell=tell if context.retell else None)


async def repeat_groups(groups: Iterable[Group], context: RunContext, tell: Observer | None) -> None:
    """Go through groups that were scored before the run was resumed: their metrics, and whom to `tell`."""
    for n, group in enumerate(groups):
        context.writer.metrics(group)
        if tell is not None:
            tell_group(group, tell)
        if n % GLIMPSE == 0:
            await asyncio.sleep(0)


def know_that_answered(groups: Iterable[Group], context: RunContext, lineup: Lineup) -> None:
    """Let the breaker know a rollout of groups on file that worked."""
    for group in groups:
        first = group.rollouts[0]
        if first.status == "ok":
            context.breaker.know(lineup.slot(first.scenario_id), answered=True)
            return
