"""The engine: a run is a fold over its phases, ``(scenarios, library) -> (result, library')``.

It knows neither pytest nor the bus: it receives `observe` and the results of marked test functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_tfgrpo import features
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.collector import give_back
from pytest_tfgrpo.core.records import CheckerResult, Phase, PhaseResult, Run, header_fields, with_shared
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.engine.attempts.decoys import clear_decoys
from pytest_tfgrpo.engine.attempts.deliveries import FromTests
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.lifetime import (
    calling,
    open_run,
    open_workspaces,
    reach_models,
    remove_workspaces,
)
from pytest_tfgrpo.engine.lineup import Arm
from pytest_tfgrpo.engine.observers import Observer, Observers, tell_again, tell_phase
from pytest_tfgrpo.engine.phases.cohort import Cohort, carry_out
from pytest_tfgrpo.engine.phases.registry import open_learning
from pytest_tfgrpo.engine.resumption import begin_budget, finished_steps, repeat_phase
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd, interrupted
from pytest_tfgrpo.learning.placebo import PLACEBO, as_placebo
from pytest_tfgrpo.learning.prompts import PromptBuilder
from pytest_tfgrpo.llm.limits.slots import endpoint_uses, failover_warnings
from pytest_tfgrpo.llm.prices import price_uses
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import Actor, OpenWatch, SweepWatch
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal_contents import run_of
from pytest_tfgrpo.runs.journal.stored_groups import KEPT
from pytest_tfgrpo.runs.schedule import steps_of
from pytest_tfgrpo.suite.packs import packs_in_use


class Engine:
    """Carries out one job, once."""

    def __init__(
        self,
        job: Job,
        *,
        folder: Path | None,
        observe: Observer | Sequence[Observer],
        watch: OpenWatch | None = None,
        extend: Callable[[Run], int] | None = None,
        paced: bool = False,
        gauge: Gauge | None = None,
        retell: bool = True,
    ) -> None:
        """`folder` receives the run's files (None: no files); `observe` receives every record, in order.

        Each of several observers is called; one that raises becomes a warning of the run, and breaks nothing.

        `watch` may end a sweep as soon as the gate is decided; without it every sweep runs completely.
        `extend` returns to how many rollouts of each scenario a final sweep is extended; 0: it is not.
        When `paced`, a phase starts only once `open_phase` has been called for it or a later one.
        `gauge` says what the run does right now. Without `retell` observers do not receive again the rollouts
        and groups that a resumed run has on file.
        """
        self._job = job
        self._opened = {phase.epoch: asyncio.Event() for phase in job.phases}
        if not paced:
            self.open_phase(None)
        self._folder = folder
        observers = [observe] if callable(observe) else list(observe)
        if job.tracing is not None:
            job.tracing.begin(job, sent=job.resumed.traced)
            observers.insert(0, job.tracing)
        self._observe = Observers(observers, retell=retell)
        self._open_watch = watch
        self._extend = extend
        self._tests = FromTests()
        self._results: list[PhaseResult] = []
        self._library = job.library
        self._warnings = list(job.warnings)
        self._gauge = gauge or Gauge()
        self._reached = False

    async def run(self) -> Run:
        """Run all phases and return the run, complete or not; a cancelled run returns what it has.

        A resumed run that is complete on file is read from there. Raises JournalError or StoreError when its
        files cannot be written.
        """
        job, warn = self._job, self._warnings.append
        if job.resumed.complete:
            begin_budget(job, warn)  # that of others too, who may still spend
            await remove_workspaces(open_workspaces(job, self._folder), warn)
            clear_decoys(self._folder)
            run = run_of(job.resumed, job)
            tell_again(run, job.resumed.ungrouped(), self._observe, groups=self._observe.retell)
            return run
        async with open_run(
            job,
            self._folder,
            observe=self._observe,
            warn=warn,
            gauge=self._gauge,
            tests=self._tests,
        ) as context:
            async with calling(context):
                end = await self._all_phases(context)
            self._warnings += (*context.span_counts.warnings, *failover_warnings(job.models.values()))
            # a test function of a resumed run may still look into a workspace
            await remove_workspaces(context.workspaces, warn, keep=not end.complete)
            run = self._run(end)
            context.writer.finish(run)
        told = self._observe.warnings
        self._observe(run)
        late = self._observe.warnings[len(told) :]
        return replace(run, warnings=run.warnings + late) if late else run

    async def _all_phases(self, context: RunContext) -> RunEnd:
        steps = steps_of(self._job.phases)
        done = finished_steps(self._job, steps)
        try:
            await context.stages.begin(context.workspaces)
            for place, phases in enumerate(steps, start=1):
                await self._opened[phases[0].epoch].wait()  # nothing of it is paid for before
                self._gauge.enter(place)
                if place <= len(done):
                    end = await self._take(done[place - 1], context)
                else:
                    end = await self._step(phases, context)
                if not end.complete:
                    return end
        except asyncio.CancelledError:
            return interrupted()
        return COMPLETE

    async def _take(self, result: PhaseResult, context: RunContext) -> RunEnd:
        """Take what a phase came to from the journal instead of going through it again."""
        end = await repeat_phase(result, context)
        if not end.complete:
            return end
        self._results.append(result)
        if result.revision is not None:
            self._warnings += context.writer.revision(result.revision)
            self._library = result.revision.library
        context.writer.phase(result, self._run(RunEnd("incomplete")))
        tell_phase(result, self._job.resumed.ungrouped() if self._observe.retell else (), self._observe)
        return end

    def judge(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Take what a marked test function found of a rollout; the first word counts."""
        self._tests.checker_results.settle(rollout_id, checker_result)

    def supply(self, rollout_id: str, agent: Actor) -> None:
        """Take the agent of a rollout whose fixtures are set up now."""
        self._tests.agents.settle(rollout_id, agent)

    def close_judging(self, epoch: int) -> None:
        """Say that no test function of `epoch` will run any more: what is not judged makes it incomplete."""
        self._tests.close(f"{self._job.run_id}.e{epoch}.")

    def open_phase(self, epoch: int | None) -> None:
        """Let all phases start up to that of `epoch`, in the order of the run; None: every phase."""
        for known, event in self._opened.items():
            event.set()
            if known == epoch:
                break

    def _library_of(self, phase: Phase) -> Library:
        """Return the library that the prompts of a phase carry: in a control that of reference or start."""
        if phase.mode == PLACEBO:
            return as_placebo(self._library, SEED.of(self._job.settings))
        if phase.is_control and self._job.reference is not None:
            return self._job.reference.library
        return self._job.library if phase.concurrent else self._library

    async def _step(self, phases: Sequence[Phase], context: RunContext) -> RunEnd:
        """Run one phase, or the final sweep pair by pair with a control, a placebo or both."""
        now = (self._job, phases[-1], self._library, self._results)
        left_out = frozenset[str]().union(*(choose(*now) for choose in features.LEAVE_OUT))
        builders = [
            PromptBuilder(self._job, self._library_of(phase), phase, left_out, context.scenarios)
            for phase in phases
        ]
        arms = [Arm(phase=phase, ask=prompts.ask) for phase, prompts in zip(phases, builders, strict=True)]
        cohort = Cohort(context, arms, self._watch_over(phases))
        end = COMPLETE if self._reached else await reach_models(self._job, phases[0], context.calls)
        self._reached = True
        if end.complete:
            end = await carry_out(cohort, context)
        while end.complete and (more := self._more(phases, cohort)):
            phases = [
                replace(phase, rollouts=phase.rollouts * more // phases[-1].rollouts) for phase in phases
            ]
            self._observe(phases[-1])
            arms = [replace(arm, phase=phase) for arm, phase in zip(arms, phases, strict=True)]
            cohort = Cohort(context, arms, earlier=cohort)
            end = await carry_out(cohort, context)
        learning = None
        if end.complete and phases[-1].trains:
            cohort.end()
            sweep = partial(_swept, context)
            learning = open_learning(context, phases[-1], self._library, self._results, sweep)
            end = await learning.learn(cohort.groups_of(phases[-1]))
        ended = [cohort.result_of(phase, end.status, self._library_of(phase).hash) for phase in phases]
        results = with_shared(
            replace(
                result,
                revision=None if learning is None else learning.revision,
                skipped_experiences=prompts.skipped,
                reason=redact(end.reason),
                calls=context.calls.of(result.phase.epoch),
                loose=(*result.loose, *(learning.loose if learning else ())),
                dev=tuple(sorted(learning.dev if learning else (), key=lambda group: group.group_id)),
            )
            for result, prompts in zip(ended, builders, strict=True)
        )
        known = [replace(r, loose=(*r.loose, *cohort.strays(r.phase.epoch))) for r in self._results]
        self._results = [*known, *results]
        self._tell(results, end, context)
        return end

    def _tell(self, results: Sequence[PhaseResult], end: RunEnd, context: RunContext) -> None:
        """Write and report what a step came to."""
        if (revision := results[-1].revision) is not None:
            self._library = revision.library
        for result in results:
            context.writer.phase(result, self._run(RunEnd("incomplete", end.reason)))
            self._observe(result)
        if any(len(result.groups) > KEPT for result in results):
            give_back()

    def _more(self, phases: Sequence[Phase], cohort: Cohort) -> int:
        """Return how many rollouts of each scenario the gate wants after all; 0 if it has enough."""
        if self._extend is None or phases[-1].mode != "eval":
            return 0
        swept = [cohort.result_of(phase, "complete", self._library_of(phase).hash) for phase in phases]
        return self._extend(self._run(COMPLETE, *swept))

    def _watch_over(self, phases: Sequence[Phase]) -> SweepWatch | None:
        """Return the watch that may end a step early; of a control that runs with it, it gets the plan."""
        start = self._job.library.hash
        begun = [
            PhaseResult(phase=p, groups=(), status="incomplete", library_hash=start) for p in phases[:-1]
        ]
        opened = self._open_watch
        return opened and opened(phases[-1], [*self._results, *begun], self._library.hash)

    def _run(self, end: RunEnd, *provisional: PhaseResult) -> Run:
        job = self._job
        skipped = max((r.skipped_experiences for r in self._results), default=0)
        warnings = [*self._warnings, *self._observe.warnings]
        if skipped:
            warnings.append(
                f"{plural(skipped, 'lesson', 'was', 'were')} left out, learned with another prompt pack; "
                "review them and run `tfgrpo library rebase`"
            )
        return Run(
            **header_fields(job) | {"warnings": tuple(map(redact, warnings))},
            status=end.status,
            finished_at=utc_now(),
            phases=with_shared([*self._results, *provisional]),
            library_start=job.library,
            library=self._library,
            reason=redact(end.reason),
            packs=packs_in_use(job.packs, (s.domain for s in job.scenarios)),
            reference=job.reference,
            endpoints=endpoint_uses(job.models.values()),
            prices=price_uses(job.models.values()),
        )


async def _swept(context: RunContext, arm: Arm) -> tuple[RunEnd, Cohort]:
    """Carry out a phase of its own within a step."""
    cohort = Cohort(context, [arm])
    return await carry_out(cohort, context), cohort
