"""A cohort: all groups of one phase, or of two that run pair by pair, from the actor's calls to scores.

Rollouts are started in order, a bounded number at a time; a finished one is checked beside the next calls,
and a group is scored as soon as it is complete. Records go to the recorder first, then to `observe`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import UNMADE, RecordingError, RewarderError
from pytest_tfgrpo.core.records import (
    Group,
    Phase,
    PhaseResult,
    Rollout,
    RunStatus,
)
from pytest_tfgrpo.harness.engine.attempt import NOTHING, AttemptResult, Slot, attempt, rollout_of
from pytest_tfgrpo.harness.engine.breaker import Attempted
from pytest_tfgrpo.harness.engine.context import RunContext
from pytest_tfgrpo.harness.engine.grader import Grader, unreached
from pytest_tfgrpo.harness.engine.groups import GroupScoring
from pytest_tfgrpo.harness.engine.ledger import Ledger
from pytest_tfgrpo.harness.engine.lineup import Arm, Lineup
from pytest_tfgrpo.harness.engine.observers import LostRollout, Observer, Record, RefusedRollout, tell_group
from pytest_tfgrpo.harness.engine.outage import LostRollouts, SettledAttempts
from pytest_tfgrpo.harness.engine.workspace_files import with_files
from pytest_tfgrpo.harness.metrics.costs import loose
from pytest_tfgrpo.harness.protocols import as_metered
from pytest_tfgrpo.harness.run.judgement import as_error
from pytest_tfgrpo.harness.run.schedule import group_id
from pytest_tfgrpo.harness.run.stored_groups import GroupPlace, GroupsById
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.llm.queueing import take_ticket

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.sequential import Watch

UNCHECKED = 1_000
"""Answers that wait for their checks, beyond which no call starts: they would fill memory."""
GLIMPSE = 100
"""Groups on file after which the event loop may do something else."""


class Cohort:
    """Runs one phase, or two pair by pair; `groups` holds what is complete, also after a cancelled `run`."""

    def __init__(
        self,
        context: RunContext,
        arms: Sequence[Arm],
        watch: Watch | None = None,
        earlier: Cohort | None = None,
    ) -> None:
        """Prepare the groups of one phase, or of a control and the final sweep, which run pair by pair.

        With `watch` scenarios run in its order, and none that may be left out once it is settled. With
        `earlier`, which had fewer rollouts of each scenario, those are kept, and only the others are made.
        """
        self._job = job = context.job
        self._arms = tuple(arm.phase for arm in arms)
        self.groups: GroupsById = GroupsById(context.groups, earlier.groups if earlier is not None else None)
        """Scored groups by their id, until the cohort has ended."""
        self._ended: dict[int, Sequence[Group]] = {}
        self._first = {id_: len(group.rollouts) for id_, group in self.groups.items()}
        self._on_file = self._settled_before(arms) if earlier is None else {}
        self.groups.take(self._on_file)
        self._lineup = Lineup(context, arms, watch, self._first, self._on_file)
        self._executor = context.executor
        self._budget = context.budget
        self._metered = as_metered(job.actor) is not None
        self._writer = context.writer
        self._grader = Grader(context)
        self.ledger: Ledger = Ledger(context, self._arms) if earlier is None else earlier.ledger
        """What its attempts cost; a cohort that another one extends shares it."""
        self._scoring = GroupScoring(
            context, self.groups, self._first, grader=self._grader, ledger=self.ledger, lineup=self._lineup
        )
        self._places = count()
        self._context = context
        self._workspaces = context.workspaces
        self._observe = context.observe
        self._gauge = context.gauge
        self._checks: asyncio.TaskGroup
        self._unchecked = 0
        self._room = asyncio.Event()
        """Set while a call may start, however many answers wait for their checks."""
        self._room.set()
        self._breaker = context.breaker
        self._lost = LostRollouts(
            context.breaker,
            context.workspaces,
            make=self._attempted,
            undo=self._undo,
            forget=self.ledger.forget,
        )

    def _settled_before(self, arms: Sequence[Arm]) -> dict[str, GroupPlace]:
        """Return where the groups are that a resumed run takes as they are, by id."""
        settled, job = self._job.resumed.settled_groups, self._job
        if settled is None:
            return {}
        return settled.places(
            group_id(job.run_id, arm.phase, id_) for arm in arms for id_ in arm.phase.scenarios
        )

    def groups_of(self, phase: Phase) -> Sequence[Group]:
        """Return the scored groups of one of the phases, in the order of its scenarios."""
        if phase.epoch in self._ended:
            return self._ended[phase.epoch]
        return self.groups.of((id_, group_id(self._job.run_id, phase, id_)) for id_ in phase.scenarios)

    def end(self) -> None:
        """Hold no more than the groups of the phases in their order: what comes next needs room."""
        self._ended = {phase.epoch: self.groups_of(phase) for phase in self._arms}
        self.groups = GroupsById(self._context.groups)

    def result_of(self, phase: Phase, status: RunStatus, library: str) -> PhaseResult:
        """Return what came of one of the phases, whose prompts carried the library of a hash."""
        known = loose((), self.ledger.paid.values(), self.ledger.abandoned)
        return PhaseResult(
            phase=phase,
            groups=self.groups_of(phase),
            status=status,
            library_hash=library,
            excluded=tuple(sorted(self._excluded_from(phase))),
            loose=tuple(rollout for rollout in known if rollout.epoch == phase.epoch),
            settled=tuple(sorted(self._lineup.settled)),
        )

    def strays(self, epoch: int) -> tuple[Rollout, ...]:
        """Return what was paid for here of a phase before, to see by it whether the provider is there."""
        own = {phase.epoch for phase in self._arms}
        return tuple(r for r in self.ledger.abandoned if r.epoch == epoch and epoch not in own)

    def _excluded_from(self, phase: Phase) -> Iterator[str]:
        """Yield the ids of scenarios whose answers in one of the phases a marked test function skipped."""
        for id_ in phase.scenarios:
            asked = self._arms[-1] if id_ in self._lineup.shared else phase
            if group_id(self._job.run_id, asked, id_) in self._grader.excluded:
                yield id_

    async def run(self) -> None:
        """Run check and score all rollouts; returns early when the budget is used up.

        Raises RewarderTimeout, RewarderError, RecordingError, JournalError.
        """
        done, lineup = tuple(self.groups[id_] for id_ in self._first), self._lineup
        self._gauge.sweep(self._arms, shared=lineup.shared, settled=lineup.settled, done=done)
        await self._repeat_settled()
        try:
            async with asyncio.TaskGroup() as scoring:
                scoring.create_task(self._scoring.run())
                async with asyncio.TaskGroup() as self._checks:
                    await self._executor.run(self._lineup, self._try)
                    await self._make_again()
                    self._context.let_go()
                self._scoring.end()
        except BaseExceptionGroup as group:
            error = _first(group)
            if isinstance(error, RewarderError | RecordingError):
                self._scoring.keep_unscored()
            raise error from None
        finally:
            self._lost.forget()
        await self._writer.commit()

    async def _repeat_settled(self) -> None:
        """Go through the groups that are taken as they are."""
        if not self._on_file:
            return
        if not self._context.retell:
            self._gauge.resume(sum(arm.rollouts for arm in self._arms) * len(self._on_file))
        groups = (self.groups[id_] for id_ in self._on_file)
        await repeat_groups(groups, self._context, tell=self._tell_settled if self._context.retell else None)
        for id_ in self._on_file:
            first = self.groups[id_].rollouts[0]
            if first.status == "ok":
                self._breaker.know(self._lineup.slot(first.scenario_id), answered=True)
                return

    def _tell_settled(self, record: Record) -> None:
        """Count and tell what was scored before the run was resumed."""
        if isinstance(record, Rollout):
            self._gauge.finish(record)
        elif isinstance(record, Group):
            self._gauge.score(record)
        self._observe(record)

    async def _try(self, slot: Slot) -> None:
        await self._room.wait()
        take_ticket(next(self._places))
        if (torn := self._lineup.torn.pop(slot.rollout_id, None)) is not None:
            self.ledger.abandon(torn)
        recorded = self._job.resumed.rollouts.get(slot.rollout_id)
        if recorded is not None:
            left = self._left(slot, recorded)
            if left is not None:
                self._breaker.know(slot, recorded.status == "ok")
                self._wait_for_check(1)
                self._checks.create_task(self._repeat(slot, recorded, left))
                return
            self.ledger.abandon(recorded)
        if slot.question.scenario.fixtures is not None:  # waits for them, and holds no place meanwhile
            self._checks.create_task(self._make_in_turn(slot))
            return
        await self._make(slot)

    async def _make(self, slot: Slot) -> None:
        await self._keep(await self._lost.make(slot))
        await self._lost.look_after(slot)

    async def _make_again(self) -> None:
        """Make what an outage lost again, until nothing more is lost."""
        while self._lost.any:
            settled = await self._lost.sort_out()
            await self._keep(settled)
            for slot in settled.again:
                await self._undo(slot)
            await self._executor.run(settled.again, self._make)
        await self._keep(SettledAttempts(self._lost.rest()))

    async def _keep(self, settled: SettledAttempts) -> None:
        """Take results, and say what will not be made."""
        for attempted in settled.taken:
            self._take(attempted)
        for slot in settled.refused:
            self._refuse(slot)
            await self._undo(slot)

    async def _make_in_turn(self, slot: Slot) -> None:
        """Make a rollout once its fixtures are set up, unless they never are; once more if it was lost."""
        attempted = await self._made_with_fixtures(slot)
        if attempted is not None and self._breaker.is_worth_another(attempted.outcome):
            self.ledger.forget(attempted.rollout)
            self._workspaces.renew(slot.call.workspace)
            self._context.agents.await_again(slot.rollout_id)
            self._observe(LostRollout(rollout_id=slot.rollout_id))
            attempted = await self._made_with_fixtures(slot)
        if attempted is not None:
            scenario = slot.question.scenario.id  # its item waits for it, so it is not held back
            self._breaker.first.holds(attempted.outcome, scenario)
            self._take(attempted)
        self._context.let_go()

    async def _made_with_fixtures(self, slot: Slot) -> Attempted | None:
        agent = await self._context.agents.of(slot.rollout_id)
        if agent is None or not await self._breaker.passing():
            return None
        with self._breaker.attempting():
            return await self._attempted(replace(slot, actor=agent))

    async def _attempted(self, slot: Slot) -> Attempted | None:
        """Return how an attempt ended, counted against the budget; None when that does not allow it."""
        began = asyncio.get_running_loop().time()
        outcome = await self._attempt(slot)
        if outcome is None:
            return None
        rollout = rollout_of(slot, outcome, self._job.run_id)
        self._gauge.pay(rollout)
        if not self._metered:
            self._budget.spend(rollout)
        return Attempted(slot, rollout, outcome, began)

    def _refuse(self, slot: Slot) -> None:
        """Say that a rollout will not be made: its test function may wait, and others for that one."""
        if slot.question.scenario.checker is not None:
            reason = self._budget.exhausted or self._breaker.reason
            self._observe(RefusedRollout(rollout_id=slot.rollout_id, reason=reason))

    def _take(self, attempted: Attempted) -> None:
        slot, rollout, outcome, _ = attempted
        if outcome.failure is not None and outcome.failure.code in UNMADE:
            if rollout.frames:  # else nothing was asked, and nothing is paid for
                self.ledger.abandon(rollout)
            self._refuse(slot)
            return
        # The next call starts before this one is checked: calls are what a run waits for.
        self._wait_for_check(1)
        self._checks.create_task(self._check(slot, rollout, outcome))

    def _wait_for_check(self, more: int) -> None:
        """Count answers that wait for their checks: as many `more`, or fewer."""
        self._unchecked += more
        if self._unchecked < UNCHECKED:
            self._room.set()
        else:
            self._room.clear()

    async def _attempt(self, slot: Slot) -> AttemptResult | None:
        """Return how the attempt ended; None when the budget does not allow it."""
        if self._metered:  # its model calls ask the budget themselves, one by one
            return None if self._budget.exhausted else await self._call(slot)
        if not await self._budget.admit():
            return None
        try:
            return await self._call(slot)
        finally:
            self._budget.release()

    async def _call(self, slot: Slot) -> AttemptResult:
        worlds = self._context.worlds
        return await (self._ask(slot) if worlds is None else worlds.around(slot, self._ask))

    async def _tear_down(self, slot: Slot) -> str:
        """Tear down the world of a rollout; return what went wrong, or nothing."""
        worlds = self._context.worlds
        return "" if worlds is None else await worlds.tear_down(slot.rollout_id)

    async def _undo(self, slot: Slot) -> None:
        """Undo what an attempt did that is no result: its world, then its workspace."""
        await self._tear_down(slot)
        self._workspaces.renew(slot.call.workspace)

    async def _ask(self, slot: Slot) -> AttemptResult:
        actor = self._executor.place(slot.actor or self._job.actor)
        tracing = self._job.tracing
        around = NOTHING if tracing is None else tracing.around(slot.rollout_id, slot.question.prompt)
        self._gauge.attempt(slot.rollout_id)
        try:
            user = None if slot.user is None else slot.user()
            return await attempt(actor, slot.call, partial(self.ledger.cancel, slot), around, user)
        finally:
            self._gauge.end(slot.rollout_id)

    async def _check(self, slot: Slot, rollout: Rollout, outcome: AttemptResult) -> None:
        try:
            rollout = await self._checked(slot, rollout)
            if broken := await self._tear_down(slot):
                rollout = as_error(rollout, "teardown", broken)
        except asyncio.CancelledError:
            self.ledger.cancel(slot, outcome)
            raise
        finally:
            self._wait_for_check(-1)
        rollout = self._writer.rollout(rollout)
        self.ledger.pay(rollout)
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

    def _left(self, slot: Slot, rollout: Rollout) -> Workspace | None:
        """Return the workspace that a rollout on file left; None when it still had to be looked at."""
        waits = rollout.status == "ok" and slot.question.scenario.checker is not None
        if not waits or rollout.rollout_id in self._job.resumed.checker_results:
            return slot.call.workspace
        if slot.question.scenario.fixtures is not None:  # its world is gone, which the test function looks at
            return None
        return self._workspaces.left(slot.rollout_id, *self._job.made_of(slot.question.scenario))

    async def _repeat(self, slot: Slot, rollout: Rollout, workspace: Workspace) -> None:
        """Take a rollout from the journal instead of paying for it again."""
        self._wait_for_check(-1)
        self.ledger.pay(rollout)
        await self._settle(slot, rollout, workspace)

    async def _settle(self, slot: Slot, rollout: Rollout, workspace: Workspace) -> None:
        """Finish a rollout with what its test function and the judge find, unless a resumed run asks them."""
        scenario = slot.question.scenario
        if rollout.status == "ok" and scenario.checker is not None:
            found = await self._grader.judge(rollout, workspace)
            if found is None:  # the resumed run needs the workspace
                return
            rollout = found
        self._workspaces.discard(workspace)
        judged = await self._grader.ask_judge(scenario, rollout)
        if judged is not None:
            self._scoring.take(judged, slot.phase.rollouts)


async def repeat_groups(groups: Iterable[Group], context: RunContext, tell: Observer | None) -> None:
    """Go through groups that were scored before the run was resumed: their metrics, and whom to `tell`."""
    for n, group in enumerate(groups):
        context.writer.metrics(group)
        if tell is not None:
            tell_group(group, tell)
        if n % GLIMPSE == 0:
            await asyncio.sleep(0)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
