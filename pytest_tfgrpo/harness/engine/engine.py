"""The engine: a run is a fold over its phases, ``(scenarios, library) -> (result, library')``.

It knows neither pytest nor the bus: it receives `observe` and the results of marked test functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.clock import utc_now
from pytest_tfgrpo.core.collector import give_back
from pytest_tfgrpo.core.errors import (
    BudgetError,
    JournalError,
    OptimizerError,
    OutageError,
    RecordingError,
    RewarderError,
)
from pytest_tfgrpo.core.files import WORKSPACES
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import (
    CheckerResult,
    Group,
    Phase,
    PhaseResult,
    Rollout,
    Run,
    RunStatus,
    header_fields,
    with_shared,
)
from pytest_tfgrpo.core.text import plural
from pytest_tfgrpo.harness.engine.breaker import Breaker
from pytest_tfgrpo.harness.engine.cohort import Cohort
from pytest_tfgrpo.harness.engine.context import RunContext
from pytest_tfgrpo.harness.engine.decoys import Decoys, clear_decoys
from pytest_tfgrpo.harness.engine.deliveries import Deliveries
from pytest_tfgrpo.harness.engine.executors.registry import open_executor
from pytest_tfgrpo.harness.engine.gauge import Gauge
from pytest_tfgrpo.harness.engine.lag import watching_lag
from pytest_tfgrpo.harness.engine.lineup import Arm
from pytest_tfgrpo.harness.engine.observers import (
    Notice,
    Observer,
    Observers,
    tell_again,
    tell_phase,
)
from pytest_tfgrpo.harness.engine.settled_groups import repeat_groups
from pytest_tfgrpo.harness.engine.stages.registry import StageSetup, open_stages
from pytest_tfgrpo.harness.engine.writer import RunWriter
from pytest_tfgrpo.harness.learning.acceptance.dev_sweeps import Unfinished
from pytest_tfgrpo.harness.learning.attribution.leaving_out import probed
from pytest_tfgrpo.harness.learning.prompts import Ask, PromptBuilder
from pytest_tfgrpo.harness.protocols import Actor, as_metered
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.harness.run.journal_contents import finished, run_of
from pytest_tfgrpo.harness.run.schedule import require_dev, steps_of
from pytest_tfgrpo.harness.run.stored_groups import KEPT, GroupStore, by_scenario
from pytest_tfgrpo.harness.sandbox.run_workspaces import RunWorkspaces
from pytest_tfgrpo.harness.sandbox.threads import call_in_daemon
from pytest_tfgrpo.harness.suite.packs import packs_in_use
from pytest_tfgrpo.llm.budget import Budget
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.slots import endpoint_uses, failover_warnings
from pytest_tfgrpo.privacy.redact import redact

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.sequential import OpenWatch, Watch

COMMIT_EVERY_S = 0.02


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

        Of several observers each is told; one that raises becomes a warning of the run, and breaks nothing.

        `watch` may end a sweep as soon as the gate is decided; without it every sweep runs completely.
        `extend` returns to how many rollouts of each scenario a final sweep is extended; 0: it is not.
        When `paced`, a phase starts only once `open_phase` has been called for it or a later one.
        `gauge` says what the run does right now. Without `retell` nobody is told once more of the rollouts
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
        self._observe = Observers(observers)
        self._open_watch = watch
        self._extend = extend
        self._checker_results = Deliveries[CheckerResult]()
        self._agents = Deliveries[Actor]()
        self._results: list[PhaseResult] = []
        self._library = job.library
        self._warnings = list(job.warnings)
        self._reason = ""
        self._dev_groups: list[Group] = []
        """Of the dev split in the present epoch."""
        self._dev_loose: list[Rollout] = []
        self._gauge = gauge or Gauge()
        self._retell = retell
        self._reached = False

    async def run(self) -> Run:
        """Run all phases and return the run, complete or not; a cancelled run returns what it has.

        A resumed run that is complete on file is told from there. Raises JournalError or StoreError when its
        files cannot be written.
        """
        budget = self._begin_budget()  # that of others too, who may still spend
        if self._job.resumed.complete:
            await self._remove(self._open_workspaces())
            clear_decoys(self._folder)
            run = run_of(self._job.resumed, self._job)
            tell_again(run, self._job.resumed.ungrouped(), self._observe, groups=self._retell)
            return run
        writer = RunWriter(self._folder, self._job)
        workspaces = self._open_workspaces()
        context = RunContext(
            job=self._job,
            scenarios={scenario.id: scenario for scenario in self._job.scenarios},
            writer=writer,
            budget=budget,
            calls=Calls(writer.call, self._job.resumed.calls, None if self._job.replayed else self._notice),
            gauge=self._gauge,
            executor=open_executor(self._job),
            breaker=Breaker(self._notice, watching=not self._job.replayed),
            checker_results=self._checker_results,
            agents=self._agents,
            workspaces=workspaces,
            decoys=Decoys(self._job, self._folder),
            stages=open_stages(StageSetup(self._job, writer, self._warnings.append)),
            groups=self._job.resumed.store or GroupStore(self._folder or self._job.temporary),
            observe=self._observe,
            retell=self._retell,
        )
        self._gauge.begin(budget, context.calls, self._job.resumed, self._job.models.values())
        try:
            with nullcontext() if self._job.replayed else watching_lag(self._warnings.append):
                end = await self._with_executor(context, workspaces)
            self._warnings += context.span_counts.warnings
            self._warnings += failover_warnings(self._job.models.values())
            # a test function of a resumed run may still look into a workspace
            await self._remove(workspaces, keep=end != "complete")
            run = self._run(end)
            writer.finish(run)
        finally:
            context.check_threads.close()
            workspaces.close(keep=True)
            clear_decoys(self._folder)
            with suppress(JournalError):  # the error that brought us here says more
                writer.close()
        told = self._observe.warnings
        self._observe(run)
        late = self._observe.warnings[len(told) :]
        return replace(run, warnings=run.warnings + late) if late else run

    async def _with_executor(self, context: RunContext, workspaces: RunWorkspaces) -> RunStatus:
        """Run all phases; end the executor's workers then."""
        for text in context.executor.notes:
            self._notice(text)
        try:
            return await self._within_stages(context, workspaces)
        finally:
            try:
                await context.executor.aclose()
            except asyncio.CancelledError:  # interrupted again: they are ended all the same
                _uncancel()
            self._warnings += context.executor.warnings

    async def _within_stages(self, context: RunContext, workspaces: RunWorkspaces) -> RunStatus:
        """Run all phases; tear down what the interrupted process left before, and what is left after."""
        try:
            await context.stages.begin(workspaces)
            return await self._all_phases(context)
        except asyncio.CancelledError:
            return self._interrupted()
        finally:
            try:
                await context.stages.close()
            except asyncio.CancelledError:  # interrupted again: a resumed run tries it
                _uncancel()

    async def _all_phases(self, context: RunContext) -> RunStatus:
        steps = steps_of(self._job.phases)
        done = self._finished(steps)
        for place, phases in enumerate(steps, start=1):
            end = await self._turn(phases[0])
            self._gauge.enter(place)
            if end == "complete" and place <= len(done):
                end = await self._take(done[place - 1], context)
            elif end == "complete":
                end = await self._step(phases, context)
            if end != "complete":
                return end
        return "complete"

    def _finished(self, steps: Sequence[Sequence[Phase]]) -> list[PhaseResult]:
        """Return what the first steps came to that ended before the run was resumed.

        A final sweep is no such step: its pairs, its early end and its extension are gone through again.
        """
        resumed = self._job.resumed
        first = [
            phases[0]
            for phases in takewhile(lambda phases: len(phases) == 1 and phases[0].mode != "eval", steps)
        ]
        done = list(takewhile(resumed.is_finished, first))
        results = finished(resumed, done) if done else {}
        return [results[phase.epoch] for phase in done]

    async def _take(self, result: PhaseResult, context: RunContext) -> RunStatus:
        """Take what a phase came to from the journal instead of going through it again."""
        groups = chain(result.groups, result.dev)
        try:
            await repeat_groups(groups, context, tell=self._observe if self._retell else None)
        except asyncio.CancelledError:
            return self._interrupted()
        self._results.append(result)
        if result.revision is not None:
            self._warnings += context.writer.revision(result.revision)
            self._library = result.revision.library
        context.writer.phase(result, self._run("incomplete"))
        tell_phase(result, self._job.resumed.ungrouped() if self._retell else (), self._observe)
        return "complete"

    def _open_workspaces(self) -> RunWorkspaces:
        needed = any(s.checker is not None or s.teardown is not None for s in self._job.scenarios)
        pointer = self._folder / WORKSPACES if self._folder is not None and needed else None
        return RunWorkspaces(self._job.run_id, self._job.temporary, pointer)

    async def _remove(self, workspaces: RunWorkspaces, *, keep: bool = False) -> None:
        """Remove the workspaces of a run that ends; what cannot be removed becomes a warning."""
        try:
            left = await call_in_daemon(workspaces.close, keep=keep)
        except asyncio.CancelledError:  # the run has ended, and the removal goes on by itself
            _uncancel()
            return
        self._warnings += [left] if left else []

    def judge(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Take what a marked test function found of a rollout; the first word counts."""
        self._checker_results.settle(rollout_id, checker_result)

    def supply(self, rollout_id: str, agent: Actor) -> None:
        """Take whom to ask for a rollout whose fixtures are set up now."""
        self._agents.settle(rollout_id, agent)

    def close_judging(self, epoch: int) -> None:
        """Say that no test function of `epoch` will run any more: what is not judged makes it incomplete."""
        self._agents.close(f"{self._job.run_id}.e{epoch}.")
        self._checker_results.close(f"{self._job.run_id}.e{epoch}.")

    def open_phase(self, epoch: int | None) -> None:
        """Let all phases start up to that of `epoch`, in the order of the run; None: every phase."""
        for known, event in self._opened.items():
            event.set()
            if known == epoch:
                break

    def _begin_budget(self) -> Budget:
        job = self._job
        budget = job.budget or Budget(job.settings)
        budget.begin(job.actor.bound(1))
        for rollout in chain(job.resumed.rollouts.values(), job.resumed.abandoned):
            budget.spend(rollout)
        cost = job.resumed.settled_cost
        budget.spend_all(usd=cost.usd, tokens=cost.tokens, unknown=cost.unknown)
        for call in job.resumed.calls.values():
            budget.spend_call(call)
        if budget.warning and as_metered(job.actor) is None:
            self._warnings.append(budget.warning)
        return budget

    def _library_of(self, phase: Phase) -> Library:
        """Return the library that the prompts of a phase carry: in a control that of reference or start."""
        if phase.is_control and self._job.reference is not None:
            return self._job.reference.library
        return self._job.library if phase.concurrent else self._library

    async def _step(self, phases: Sequence[Phase], context: RunContext) -> RunStatus:
        """Run one phase, or a control and the final sweep pair by pair."""
        left_out = probed(self._job, phases[-1], self._library, self._results)
        builders = [
            PromptBuilder(self._job, self._library_of(phase), phase, left_out, context.scenarios)
            for phase in phases
        ]
        self._dev_groups, self._dev_loose = [], []
        arms = [Arm(phase=phase, ask=prompts.ask) for phase, prompts in zip(phases, builders, strict=True)]
        cohort = Cohort(context, arms, self._watch_over(phases))
        end = await self._reach_models(phases[0], context.calls)
        if end == "complete":
            end = await self._carry_out(cohort, context)
        while end == "complete" and (more := self._more(phases, cohort)):
            phases = [
                replace(phase, rollouts=phase.rollouts * more // phases[-1].rollouts) for phase in phases
            ]
            self._observe(phases[-1])
            arms = [replace(arm, phase=phase) for arm, phase in zip(arms, phases, strict=True)]
            cohort = Cohort(context, arms, earlier=cohort)
            end = await self._carry_out(cohort, context)
        last, revision = phases[-1], None
        if end == "complete" and last.mode == "train":
            cohort.end()
            end, revision = await self._learn(last, cohort.groups_of(last), context)
        ended = [cohort.result_of(phase, end, self._library_of(phase).hash) for phase in phases]
        results = with_shared(
            replace(
                result,
                revision=revision,
                skipped_experiences=prompts.skipped,
                reason=redact(self._reason),
                calls=context.calls.of(result.phase.epoch),
                loose=(*result.loose, *self._dev_loose),
                dev=tuple(sorted(self._dev_groups, key=lambda group: group.group_id)),
            )
            for result, prompts in zip(ended, builders, strict=True)
        )
        known = [replace(r, loose=(*r.loose, *cohort.strays(r.phase.epoch))) for r in self._results]
        self._results = [*known, *results]
        if revision is not None:
            self._library = revision.library
        for result in results:
            context.writer.phase(result, self._run("incomplete"))
            self._observe(result)
        if any(len(result.groups) > KEPT for result in results):
            give_back()
        return end

    def _more(self, phases: Sequence[Phase], cohort: Cohort) -> int:
        """Return how many rollouts of each scenario the gate wants after all; 0 if it has enough."""
        if self._extend is None or phases[-1].mode != "eval":
            return 0
        swept = [cohort.result_of(phase, "complete", self._library_of(phase).hash) for phase in phases]
        return self._extend(self._run("complete", *swept))

    def _watch_over(self, phases: Sequence[Phase]) -> Watch | None:
        """Return the watch that may end a step early; of a control that runs with it, it gets the plan."""
        start = self._job.library.hash
        begun = [
            PhaseResult(phase=p, groups=(), status="incomplete", library_hash=start) for p in phases[:-1]
        ]
        opened = self._open_watch
        return opened and opened(phases[-1], [*self._results, *begun], self._library.hash)

    async def _reach_models(self, phase: Phase, calls: Calls) -> RunStatus:
        """Ask each model besides the actor's once before the first phase, while nothing is paid for yet."""
        if self._reached:
            return "complete"
        self._reached = True
        one_each = {model.name: (role, model) for role, model in self._job.reach.items()}
        reaching = (calls.reach(model, role=role, epoch=phase.epoch) for role, model in one_each.values())
        try:
            found = await asyncio.gather(*reaching, return_exceptions=True)
        except asyncio.CancelledError:
            return self._interrupted()
        for error in found:
            if isinstance(error, BaseException):
                if not isinstance(error, OutageError | BudgetError):
                    raise error
                self._reason = str(error)
        return "incomplete" if self._reason else "complete"

    async def _sweep_dev(self, context: RunContext, phase: Phase, ask: Ask) -> Mapping[str, Group]:
        """Carry out one sweep of the dev split; raises Unfinished."""
        self._observe(phase)
        cohort = Cohort(context, [Arm(phase=phase, ask=ask)])
        end = await self._carry_out(cohort, context)
        self._dev_groups += cohort.groups.values()
        self._dev_loose += cohort.result_of(phase, end, "").loose
        if end != "complete":
            raise Unfinished(end)
        return by_scenario(cohort.groups_of(phase))

    async def _accept(
        self, phase: Phase, groups: Sequence[Group], candidate: Revision, context: RunContext
    ) -> Revision:
        """Return what of `candidate` comes into force; raises Unfinished."""
        from pytest_tfgrpo.harness.learning.acceptance.decision import decide, undecided
        from pytest_tfgrpo.harness.learning.acceptance.standpoint import Standpoint

        job, earlier = self._job, tuple(self._results)
        known = job.resumed.revisions.get(phase.epoch)
        if not phase.dev or candidate.acceptance is not None:
            return known or undecided(candidate, job.scenarios, job.settings)
        require_dev(job.scenarios, phase)
        context.writer.candidate(candidate)
        await context.writer.commit()
        at = Standpoint(job, phase, groups, self._library, candidate, earlier)
        decided = await decide(at, partial(self._sweep_dev, context))
        return known or decided

    async def _turn(self, phase: Phase) -> RunStatus:
        """Wait until `phase` may start; nothing of it is paid for before."""
        try:
            await self._opened[phase.epoch].wait()
        except asyncio.CancelledError:
            return self._interrupted()
        return "complete"

    async def _carry_out(self, cohort: Cohort, context: RunContext) -> RunStatus:
        committer = asyncio.create_task(_commit_often(context.writer))
        try:
            await cohort.run()
        except asyncio.CancelledError:
            return self._interrupted()
        except (RewarderError, RecordingError) as error:
            self._reason = str(error)
            return "aborted"
        finally:
            committer.cancel()
        missing = self._agents.missing or self._checker_results.missing
        self._reason = context.budget.exhausted or context.breaker.reason or missing
        return "incomplete" if self._reason else "complete"

    async def _learn(
        self, phase: Phase, groups: Sequence[Group], context: RunContext
    ) -> tuple[RunStatus, Revision | None]:
        from pytest_tfgrpo.harness.learning.step import learn
        from pytest_tfgrpo.harness.run.headroom import look_ahead

        writer = context.writer
        committer = asyncio.create_task(_commit_often(writer))
        self._gauge.learn(sum(group.informative for group in groups))
        try:
            text, self._reason = await asyncio.to_thread(look_ahead, self._job, phase, groups, self._results)
            if text:
                self._notice(text)
            if self._reason:
                return "incomplete", None
            candidate = await learn(self._job, phase, groups, self._library, context.calls, self._results)
            revision = await self._accept(phase, groups, candidate, context)
            self._warnings += writer.revision(revision)
            await writer.commit()
        except asyncio.CancelledError:
            return self._interrupted(), None
        except Unfinished as unfinished:
            return unfinished.end, None
        except (OptimizerError, RecordingError) as error:
            self._reason = str(error)
            return "aborted", None
        except (BudgetError, OutageError) as error:
            self._reason = str(error)
            return "incomplete", None
        finally:
            committer.cancel()
        for operation in revision.applied:
            if operation.experience is not None:
                self._observe(operation.experience)
        return "complete", revision

    def _notice(self, text: str) -> None:
        self._observe(Notice(text=text))

    def _interrupted(self) -> RunStatus:
        """Let this task await again after it was cancelled: what was done is still to be written down."""
        _uncancel()
        self._reason = "interrupted"
        return "cancelled"

    def _run(self, status: RunStatus, *provisional: PhaseResult) -> Run:
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
            status=status,
            finished_at=utc_now(),
            phases=with_shared([*self._results, *provisional]),
            library_start=job.library,
            library=self._library,
            reason=redact(self._reason),
            packs=packs_in_use(job.packs, (s.domain for s in job.scenarios)),
            reference=job.reference,
            endpoints=endpoint_uses(job.models.values()),
        )


def _uncancel() -> None:
    """Let the present task await again."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


async def _commit_often(writer: RunWriter) -> None:
    with suppress(JournalError):  # the commit at the end of the phase raises it
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            await writer.commit()
