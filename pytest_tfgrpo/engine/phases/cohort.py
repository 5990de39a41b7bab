"""A cohort: all groups of one phase, or of several side by side, from calls to scores.

Rollouts are started in order, a bounded number at a time; a finished one is checked beside the next calls,
and a group is scored as soon as it is complete. Records go to the recorder first, then to `observe`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.errors import UNMADE, RecordingError, RewarderError
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout, RunStatus
from pytest_tfgrpo.engine.attempts.attempt import Slot
from pytest_tfgrpo.engine.attempts.breaker import Attempted
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.engine.ledger import Ledger
from pytest_tfgrpo.engine.lineup import Arm, Lineup
from pytest_tfgrpo.engine.observers import RefusedRollout
from pytest_tfgrpo.engine.phases.attempts import Attempts
from pytest_tfgrpo.engine.phases.checking import Checking, start
from pytest_tfgrpo.engine.phases.grader import Grader
from pytest_tfgrpo.engine.phases.group_scoring import GroupScoring
from pytest_tfgrpo.engine.phases.in_turn import InTurn
from pytest_tfgrpo.engine.phases.outage import LostRollouts, SettledAttempts
from pytest_tfgrpo.engine.resumption import note_answered, places_of_settled, repeat_settled
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd, incomplete, interrupted
from pytest_tfgrpo.engine.stages.registry import SOURCES
from pytest_tfgrpo.metrics.paid import loose
from pytest_tfgrpo.protocols import SweepWatch
from pytest_tfgrpo.runs.journal.stored_groups import GroupsById
from pytest_tfgrpo.runs.schedule import group_id


class Cohort:
    """Runs one phase, or several side by side; `groups` holds what is complete, also when cancelled."""

    def __init__(
        self,
        context: RunContext,
        arms: Sequence[Arm],
        watch: SweepWatch | None = None,
        earlier: Cohort | None = None,
    ) -> None:
        """Prepare the groups of one phase, or of the final sweep and those that run beside it.

        With `watch` scenarios run in its order, and none that may be left out once it is settled. With
        `earlier`, which had fewer rollouts of each scenario, those are kept, and only the others are made.
        """
        self._context = context
        self._phases = tuple(arm.phase for arm in arms)
        self.groups: GroupsById = GroupsById(
            context.writer.group_store, earlier.groups if earlier is not None else None
        )
        """Scored groups by their id, until the cohort has ended."""
        self._ended: dict[int, Sequence[Group]] = {}
        first = {id_: len(group.rollouts) for id_, group in self.groups.items()}
        self._on_file = places_of_settled(context.job, self._phases) if earlier is None else {}
        self.groups.take(self._on_file)
        self._lineup = lineup = Lineup(context, arms, watch, first, self._on_file)
        self.ledger: Ledger = Ledger(context, self._phases) if earlier is None else earlier.ledger
        """What its attempts cost; a cohort that another one extends shares it."""
        self._grader = grader = Grader(context)
        self._scoring = scoring = GroupScoring(
            context, self.groups, first, grader=grader, ledger=self.ledger, lineup=lineup
        )
        self._tasks = asyncio.TaskGroup()
        self._checking = Checking(
            context, self._tasks, grader=grader, lineup=lineup, ledger=self.ledger, scoring=scoring
        )
        opened = (open_source(context, lineup, self.ledger) for open_source in SOURCES)
        self._sources = [source for source in opened if source is not None]
        self._attempts = attempts = Attempts(context, self.ledger)
        self._in_turn = InTurn(context, attempts, self.ledger)
        self._lost = LostRollouts(
            context.breaker,
            context.workspaces,
            make=attempts.make,
            undo=attempts.undo,
            forget=self.ledger.forget,
        )

    def groups_of(self, phase: Phase) -> Sequence[Group]:
        """Return the scored groups of one of the phases, in the order of its scenarios."""
        if phase.epoch in self._ended:
            return self._ended[phase.epoch]
        run_id = self._context.job.run_id
        return self.groups.of((id_, group_id(run_id, phase, id_)) for id_ in phase.scenarios)

    def end(self) -> None:
        """Hold no more than the groups of the phases in their order: what comes next needs room."""
        self._ended = {phase.epoch: self.groups_of(phase) for phase in self._phases}
        self.groups = GroupsById(self._context.writer.group_store)

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
        own = {phase.epoch for phase in self._phases}
        return tuple(r for r in self.ledger.abandoned if r.epoch == epoch and epoch not in own)

    def _excluded_from(self, phase: Phase) -> Iterator[str]:
        """Yield the ids of scenarios whose answers in one of the phases a marked test function skipped."""
        for id_ in phase.scenarios:
            epoch = self._lineup.shared.get(phase.epoch, {}).get(id_, phase.epoch)
            asked = next(one for one in self._phases if one.epoch == epoch)
            if group_id(self._context.job.run_id, asked, id_) in self._grader.excluded:
                yield id_

    async def run(self) -> None:
        """Run check and score all rollouts; returns early when the budget is used up. Called once.

        Raises RewarderTimeout, RewarderError, RecordingError, JournalError.
        """
        await self._begin()
        try:
            async with asyncio.TaskGroup() as scoring:
                scoring.create_task(self._scoring.run())
                async with self._tasks:
                    await self._context.executor.run(self._lineup, self._try)
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
            self._checking.forget()
        await self._context.writer.commit()

    async def _begin(self) -> None:
        """Show the sweep, and go through the groups that are taken as they are."""
        context, gauge, lineup = self._context, self._context.gauge, self._lineup
        done = tuple(self.groups[id_] for id_ in self._scoring.first)
        gauge.sweep(self._phases, shared=lineup.shared, settled=lineup.settled, done=done)
        if self._on_file:
            if not context.observe.retell:
                gauge.resume(sum(len(self.groups[id_].rollouts) for id_ in self._on_file))
            await repeat_settled(self.groups, self._on_file, context)
            note_answered((self.groups[id_] for id_ in self._on_file), context, lineup)

    async def _try(self, slot: Slot) -> None:
        """Take a known answer, or make the rollout: here, or in a task of its own if it has fixtures."""
        await self._checking.wait_for_room()
        self._attempts.queue_up()
        for source in self._sources:
            if (answer := source.find(slot)) is not None:
                self._checking.repeat(slot, answer)
                return
        if slot.question.scenario.fixtures is not None:  # waits for them, and holds no place meanwhile
            start(self._make_in_turn(slot), self._tasks)
            return
        await self._make(slot)

    async def _make(self, slot: Slot) -> None:
        await self._keep(await self._lost.make(slot))
        await self._lost.look_after(slot)

    async def _make_in_turn(self, slot: Slot) -> None:
        attempted = await self._in_turn.make(slot)
        if attempted is not None:
            await self._keep(SettledAttempts([attempted]))
        self._context.let_go()

    async def _make_again(self) -> None:
        """Make what an outage lost again, until nothing more is lost."""
        while self._lost.any:
            settled = await self._lost.sort_out()
            await self._keep(settled)
            for slot in settled.again:
                await self._attempts.undo(slot)
            await self._context.executor.run(settled.again, self._make)
        await self._keep(SettledAttempts(self._lost.rest()))

    async def _keep(self, settled: SettledAttempts) -> None:
        """Take results, and say what will not be made."""
        unmade = [attempted for attempted in settled.taken if _is_unmade(attempted)]
        for attempted in unmade:
            if attempted.rollout.frames:  # else no agent ran, and nothing is paid for
                self.ledger.abandon(attempted.rollout)
        self._checking.take([attempted for attempted in settled.taken if not _is_unmade(attempted)])
        for slot in (*(attempted.slot for attempted in unmade), *settled.refused):
            self._refuse(slot)
            await self._attempts.undo(slot)

    def _refuse(self, slot: Slot) -> None:
        """Say that a rollout will not be made: its test function may wait, and others for that one."""
        if slot.question.scenario.checker is not None:
            reason = self._context.job.budget.exhausted or self._context.breaker.reason
            self._context.observe(RefusedRollout(rollout_id=slot.rollout_id, reason=reason))


async def carry_out(cohort: Cohort, context: RunContext) -> RunEnd:
    """Run a cohort, and return how that ended; raises JournalError."""
    try:
        with context.writer.committing():
            await cohort.run()
    except asyncio.CancelledError:
        return interrupted()
    except (RewarderError, RecordingError) as error:
        return RunEnd("aborted", str(error))
    reason = context.job.budget.exhausted or context.breaker.reason or context.tests.missing
    return incomplete(reason) if reason else COMPLETE


def _is_unmade(attempted: Attempted) -> bool:
    """Return whether an attempt is no result, and is made again when the run is resumed."""
    failure = attempted.outcome.failure
    return failure is not None and failure.code in UNMADE


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
