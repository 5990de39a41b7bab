"""The end of a training phase: lessons from its groups, tried on the dev split, kept or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo import features
from pytest_tfgrpo.core.errors import BudgetError, OptimizerError, OutageError, RecordingError
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout
from pytest_tfgrpo.engine.lineup import Arm
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd, incomplete, interrupted
from pytest_tfgrpo.learning.acceptance.decision import Unfinished, decide, undecided
from pytest_tfgrpo.learning.acceptance.standpoint import Standpoint
from pytest_tfgrpo.learning.step import learn
from pytest_tfgrpo.runs.journal.stored_groups import by_scenario
from pytest_tfgrpo.runs.schedule import require_dev

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.phases.cohort import Cohort
    from pytest_tfgrpo.learning.prompts import Ask


class LearningPhase:
    """What one training phase makes of its groups."""

    def __init__(
        self,
        context: RunContext,
        phase: Phase,
        library: Library,
        earlier: Sequence[PhaseResult],
        sweep: Callable[[Arm], Awaitable[tuple[RunEnd, Cohort]]],
    ) -> None:
        """`sweep` carries out a sweep of the dev split; `earlier` are the results of the run so far."""
        self._context, self._phase, self._library = context, phase, library
        self._earlier, self._sweep = tuple(earlier), sweep
        self.revision: Revision | None = None
        """What comes into force, once it is known."""
        self.dev: list[Group] = []
        """Of the dev split."""
        self.loose: list[Rollout] = []
        """Of the dev split, in no group."""

    async def learn(self, groups: Sequence[Group]) -> RunEnd:
        """Learn from groups, and return how that ended; sets `revision` if it is complete."""
        self._context.gauge.learn(sum(group.informative for group in groups))
        try:
            with self._context.writer.committing():
                return await self._learn(groups)
        except asyncio.CancelledError:
            return interrupted()
        except Unfinished as unfinished:
            return RunEnd(unfinished.end, unfinished.reason)
        except (OptimizerError, RecordingError) as error:
            return RunEnd("aborted", str(error))
        except (BudgetError, OutageError) as error:
            return incomplete(str(error))

    async def _learn(self, groups: Sequence[Group]) -> RunEnd:
        context, job, phase = self._context, self._context.job, self._phase
        for look in features.BEFORE_LEARNING:
            text, reason = await asyncio.to_thread(look, job, phase, groups, self._earlier)
            if text:
                context.observe(Notice(text=text))
            if reason:
                return incomplete(reason)
        candidate = await learn(job, phase, groups, self._library, context.calls, self._earlier)
        revision = await self._accept(groups, candidate)
        for complaint in context.writer.revision(revision):
            context.warn(complaint)
        await context.writer.commit()
        self.revision = revision
        for operation in revision.applied:
            if operation.experience is not None:
                context.observe(operation.experience)
        return COMPLETE

    async def _accept(self, groups: Sequence[Group], candidate: Revision) -> Revision:
        """Return what of `candidate` comes into force; raises Unfinished."""
        job, phase, writer = self._context.job, self._phase, self._context.writer
        known = job.resumed.revisions.get(phase.epoch)
        if not phase.dev or candidate.acceptance is not None:
            return known or undecided(candidate, job.scenarios, job.settings)
        require_dev(job.scenarios, phase)
        writer.candidate(candidate)
        await writer.commit()
        at = Standpoint(job, phase, groups, self._library, candidate, self._earlier)
        decided = await decide(at, self._sweep_dev)
        return known or decided

    async def _sweep_dev(self, phase: Phase, ask: Ask) -> Mapping[str, Group]:
        """Carry out one sweep of the dev split; raises Unfinished."""
        self._context.observe(phase)
        end, cohort = await self._sweep(Arm(phase=phase, ask=ask))
        self.dev += cohort.groups.values()
        self.loose += cohort.result_of(phase, end.status, "").loose
        if not end.complete:
            raise Unfinished(*end)
        return by_scenario(cohort.groups_of(phase))
