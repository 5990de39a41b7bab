"""What follows an attempt, beside the next calls: its checks, its test function, the judge, and its group."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.engine.phases.grader import Grader, unreached
from pytest_tfgrpo.engine.phases.workspace_files import with_files

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout
    from pytest_tfgrpo.engine.attempts.attempt import Slot
    from pytest_tfgrpo.engine.attempts.breaker import Attempted
    from pytest_tfgrpo.engine.attempts.stage import KnownAnswer
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger
    from pytest_tfgrpo.engine.lineup import Lineup
    from pytest_tfgrpo.engine.phases.group_scoring import GroupScoring
    from pytest_tfgrpo.sandbox.workspace import Workspace

UNCHECKED = 1_000
"""Answers that wait for their checks, beyond which no call starts: they would fill memory."""


class Checking:
    """Makes results of the attempts of a cohort."""

    def __init__(
        self,
        context: RunContext,
        tasks: asyncio.TaskGroup,
        *,
        grader: Grader,
        lineup: Lineup,
        ledger: Ledger,
        scoring: GroupScoring,
    ) -> None:
        """`tasks` runs the checks."""
        self._context, self._tasks, self._grader = context, tasks, grader
        self._lineup, self._ledger, self._scoring = lineup, ledger, scoring
        self._unchecked = 0
        self._room = asyncio.Event()
        self._room.set()
        self._unwritten: dict[str, Attempted] = {}
        """Attempts by id whose rollouts are not written yet."""

    async def wait_for_room(self) -> None:
        """Wait until a call may start, however many answers wait for their checks."""
        await self._room.wait()

    def take(self, attempts: Sequence[Attempted]) -> None:
        """Check attempts; the next call starts before: calls are what a run waits for."""
        self._unwritten.update((attempted.slot.rollout_id, attempted) for attempted in attempts)
        for attempted in attempts:
            self._count(1)
            start(self._check(attempted.slot, attempted.rollout), self._tasks)

    def repeat(self, slot: Slot, answer: KnownAnswer) -> None:
        """Take an answer that exists already."""
        self._count(1)
        start(self._repeat(slot, answer), self._tasks)

    def forget(self) -> None:
        """Keep only what attempts cost whose checks the end of the run cut short."""
        for attempted in self._unwritten.values():
            self._ledger.cancel(attempted.slot, attempted.outcome)

    def _count(self, more: int) -> None:
        """Count so many `more` answers that wait for their checks, or fewer."""
        self._unchecked += more
        if self._unchecked < UNCHECKED:
            self._room.set()
        else:
            self._room.clear()

    async def _check(self, slot: Slot, rollout: Rollout) -> None:
        try:
            rollout = await self._checked(slot, rollout)
            rollout = await self._context.stages.checked(slot, rollout)
        finally:
            self._count(-1)
        rollout = self._context.writer.rollout(rollout)
        del self._unwritten[slot.rollout_id]
        self._ledger.pay(rollout)
        await self._settle(slot, rollout, slot.call.workspace)

    async def _checked(self, slot: Slot, rollout: Rollout) -> Rollout:
        """Return a rollout with what it did to its workspace, and with its checks."""
        scenario = slot.question.scenario
        await asyncio.sleep(0)  # the next call, made a task just now, goes first
        self._lineup.make_ready()
        rollout = await with_files(self._context, slot.call, scenario, rollout)
        if rollout.status == "failed":
            return replace(rollout, checks=unreached(scenario, rollout))
        if rollout.status == "ok" and scenario.checker is None:
            return await self._grader.evaluate(scenario, rollout, slot.call.workspace)
        return rollout

    async def _repeat(self, slot: Slot, answer: KnownAnswer) -> None:
        """Take an answer instead of paying for another one."""
        self._count(-1)
        rollout = answer.rollout if answer.on_file else self._context.writer.rollout(answer.rollout)
        self._ledger.pay(rollout)
        await self._settle(slot, rollout, answer.workspace)

    async def _settle(self, slot: Slot, rollout: Rollout, workspace: Workspace) -> None:
        """Finish a rollout with what its test function and the judge find, unless a resumed run has it."""
        scenario = slot.question.scenario
        if rollout.status == "ok" and scenario.checker is not None:
            found = await self._grader.judge(rollout, workspace)
            if found is None:  # the resumed run needs the workspace
                return
            rollout = found
        self._context.workspaces.discard(workspace)
        judged = await self._grader.ask_judge(scenario, rollout)
        if judged is not None:
            self._scoring.take(judged, slot.phase.rollouts_of(scenario.id))


def start(work: Coroutine[object, object, None], tasks: asyncio.TaskGroup) -> None:
    """Run a coroutine beside others; raises RuntimeError when one of these has broken, which ends all."""
    try:
        tasks.create_task(work)
    except RuntimeError:
        work.close()
        raise
