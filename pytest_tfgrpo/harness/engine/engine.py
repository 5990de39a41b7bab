"""The engine: a run is a fold over its phases, ``(scenarios, library) -> (result, library')``.

It knows neither pytest nor the bus: it receives `observe` and the results of marked test functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.clock import utc_now
from pytest_tfgrpo.core.errors import (
    BudgetError,
    JournalError,
    OptimizerError,
    OutageError,
    RecordingError,
    RewarderError,
)
from pytest_tfgrpo.core.files import WORKSPACES
from pytest_tfgrpo.core.lessons import Revision
from pytest_tfgrpo.core.records import (
    CheckerResult,
    Group,
    Phase,
    PhaseResult,
    Rollout,
    Run,
    RunStatus,
    header_fields,
)
from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.text import plural
from pytest_tfgrpo.harness.engine.breaker import Breaker
from pytest_tfgrpo.harness.engine.checker_results import CheckerResults
from pytest_tfgrpo.harness.engine.cohort import Cohort
from pytest_tfgrpo.harness.engine.context import RunContext
from pytest_tfgrpo.harness.engine.decoys import Decoys, clear_decoys
from pytest_tfgrpo.harness.engine.lag import watching_lag
from pytest_tfgrpo.harness.engine.observers import Notice, Observer, Observers
from pytest_tfgrpo.harness.engine.writer import RunWriter
from pytest_tfgrpo.harness.learning.acceptance.dev_sweeps import DevSweeps, Unfinished
from pytest_tfgrpo.harness.learning.prompts import Ask, PromptBuilder
from pytest_tfgrpo.harness.protocols import as_metered
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.harness.run.journal_contents import run_of
from pytest_tfgrpo.harness.sandbox.run_workspaces import RunWorkspaces
from pytest_tfgrpo.harness.sandbox.threads import call_in_daemon
from pytest_tfgrpo.harness.suite.packs import packs_in_use
from pytest_tfgrpo.llm.budget import Budget
from pytest_tfgrpo.llm.calls import Calls

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.sequential import OpenWatch

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
        paced: bool = False,
    ) -> None:
        """`folder` receives the run's files (None: no files); `observe` receives every record, in order.

        Of several observers each is told; one that raises becomes a warning of the run, and breaks nothing.

        `watch` may end a sweep as soon as the gate is decided; without it every sweep runs completely.
        When `paced`, a phase starts only once `open_phase` has been called for it or a later one.
        """
        self._job = job
        self._opened = {phase.epoch: asyncio.Event() for phase in job.phases}
        if not paced:
            self.open_phase(max(self._opened, default=0))
        self._folder = folder
        observers = [observe] if callable(observe) else list(observe)
        if job.tracing is not None:
            job.tracing.begin(job, sent=job.resumed.traced)
            observers.insert(0, job.tracing)
        self._observe = Observers(observers)
        self._open_watch = watch
        self._checker_results = CheckerResults()
        self._results: list[PhaseResult] = []
        self._library = job.library
        self._warnings = list(job.warnings)
        self._reason = ""
        self._dev: DevSweeps | None = None
        self._dev_groups: list[Group] = []
        """Of the dev split in the present epoch, over all its sweeps."""
        self._dev_loose: list[Rollout] = []

    async def run(self) -> Run:
        """Run all phases and return the run, complete or not; a cancelled run returns what it has.

        A resumed run that is complete on file is told from there. Raises JournalError or StoreError when its
        files cannot be written.
        """
        if self._job.resumed.complete:
            await self._remove(self._open_workspaces())
            clear_decoys(self._folder)
            return self._tell_again()
        budget = self._begin_budget()
        writer = RunWriter(self._folder, self._job)
        workspaces = self._open_workspaces()
        context = RunContext(
            job=self._job,
            writer=writer,
            budget=budget,
            calls=Calls(writer.call, self._job.resumed.calls, None if self._job.replayed else self._notice),
            breaker=Breaker(self._notice, watching=not self._job.replayed),
            checker_results=self._checker_results,
            workspaces=workspaces,
            decoys=Decoys(self._job, self._folder),
            observe=self._observe,
        )
        self._dev = DevSweeps(
            self._job.scenarios,
            self._job.settings,
            prompts=lambda library: PromptBuilder(self._job, library).ask,
            sweep=partial(self._sweep_dev, context),
        )
        try:
            with nullcontext() if self._job.replayed else watching_lag(self._warnings.append):
                end = await self._all_phases(context)
            # a test function of a resumed run may still look into a workspace
            await self._remove(workspaces, keep=end != "complete")
            run = self._run(end)
            writer.finish(run)
        finally:
            workspaces.close(keep=True)
            clear_decoys(self._folder)
            with suppress(JournalError):  # the error that brought us here says more
                writer.close()
        told = self._observe.warnings
        self._observe(run)
        late = self._observe.warnings[len(told) :]
        return replace(run, warnings=run.warnings + late) if late else run

    async def _all_phases(self, context: RunContext) -> RunStatus:
        for phase in self._job.phases:
            end = await self._turn(phase)
            if end == "complete":
                end = await self._phase(phase, context)
            if end != "complete":
                return end
        return "complete"

    def _open_workspaces(self) -> RunWorkspaces:
        marked = any(scenario.checker is not None for scenario in self._job.scenarios)
        pointer = self._folder / WORKSPACES if self._folder is not None and marked else None
        return RunWorkspaces(self._job.run_id, self._job.temporary, pointer)

    async def _remove(self, workspaces: RunWorkspaces, *, keep: bool = False) -> None:
        """Remove the workspaces of a run that ends; what cannot be removed becomes a warning."""
        try:
            left = await call_in_daemon(workspaces.close, keep=keep)
        except asyncio.CancelledError:  # the run has ended, and the removal goes on by itself
            _uncancel()
            return
        self._warnings += [left] if left else []

    def _tell_again(self) -> Run:
        """Tell a complete run from its journal: nobody is asked, and nothing is written."""
        run = run_of(self._job.resumed, self._job)
        for result in run.phases:
            groups = (*result.groups, *result.dev)
            judged = {rollout.rollout_id: rollout for group in groups for rollout in group.rollouts}
            for rollout in self._job.resumed.rollouts.values():
                if rollout.epoch == result.phase.epoch:
                    self._observe(judged.get(rollout.rollout_id, rollout))
            for group in groups:
                self._observe(group)
            for operation in result.revision.applied if result.revision is not None else ():
                if operation.experience is not None:
                    self._observe(operation.experience)
            self._observe(result)
        self._observe(run)
        return run

    def judge(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Take what a marked test function found of a rollout; the first word counts."""
        self._checker_results.settle(rollout_id, checker_result)

    def close_judging(self, epoch: int) -> None:
        """Say that no test function of `epoch` will run any more: what is not judged makes it incomplete."""
        self._checker_results.close(f"{self._job.run_id}.e{epoch}.")

    def open_phase(self, epoch: int) -> None:
        """Let all phases up to `epoch` start."""
        for known, event in self._opened.items():
            if known <= epoch:
                event.set()

    def _begin_budget(self) -> Budget:
        job = self._job
        budget = job.budget or Budget(job.settings)
        budget.begin(job.actor.bound(1))
        for rollout in (*job.resumed.rollouts.values(), *job.resumed.abandoned):
            budget.spend(rollout)
        for call in job.resumed.calls.values():
            budget.spend_call(call)
        if budget.warning and as_metered(job.actor) is None:
            self._warnings.append(budget.warning)
        return budget

    async def _phase(self, phase: Phase, context: RunContext) -> RunStatus:
        prompts = PromptBuilder(self._job, self._library, phase)
        self._dev_groups, self._dev_loose = [], []
        opened = self._open_watch
        watch = None if opened is None else opened(phase, self._results, self._library.hash)
        cohort = Cohort(context, phase, prompts.ask, watch)
        end = await self._reach_models(phase, context.calls)
        if end == "complete":
            end = await self._carry_out(cohort, context)
        groups = tuple(cohort.groups[s] for s in phase.scenarios if s in cohort.groups)
        revision = None
        if end == "complete" and phase.mode == "train":
            end = self._look_ahead(phase, groups)
            if end == "complete":
                end, revision = await self._learn(phase, groups, context)
        result = PhaseResult(
            phase=phase,
            groups=groups,
            status=end,
            library_hash=self._library.hash,
            revision=revision,
            skipped_experiences=prompts.skipped,
            excluded=tuple(sorted(cohort.excluded)),
            reason=redact(self._reason),
            calls=context.calls.of(phase.epoch),
            loose=(*cohort.loose, *self._dev_loose),
            dev=tuple(sorted(self._dev_groups, key=lambda group: group.group_id)),
            settled=tuple(sorted(cohort.settled)),
        )
        self._results.append(result)
        if revision is not None:
            self._library = revision.library
        context.writer.phase(result, self._run("incomplete"))
        self._observe(result)
        return end

    async def _reach_models(self, phase: Phase, calls: Calls) -> RunStatus:
        """Ask each model besides the actor's once before the first phase, while nothing is paid for yet."""
        if self._results:
            return "complete"
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
        cohort = Cohort(context, phase, ask)
        end = await self._carry_out(cohort, context)
        self._dev_groups += cohort.groups.values()
        self._dev_loose += cohort.loose
        if end != "complete":
            raise Unfinished(end)
        return cohort.groups

    async def _accept(self, phase: Phase, candidate: Revision, context: RunContext) -> Revision:
        """Return what of `candidate` comes into force; raises Unfinished."""
        from pytest_tfgrpo.harness.learning.acceptance.decision import decide, limits_of, undecided

        job = self._job
        known = job.resumed.revisions.get(phase.epoch)
        if not phase.dev or self._dev is None or candidate.acceptance is not None:
            return known or undecided(candidate, job.scenarios, job.settings)
        context.writer.candidate(candidate)
        await context.writer.commit()
        self._dev.begin(phase)
        decided = await decide(self._library, candidate, self._dev, limits_of(phase, job.settings))
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
        self._reason = context.budget.exhausted or context.breaker.reason or self._checker_results.missing
        return "incomplete" if self._reason else "complete"

    async def _learn(
        self, phase: Phase, groups: tuple[Group, ...], context: RunContext
    ) -> tuple[RunStatus, Revision | None]:
        from pytest_tfgrpo.harness.learning.step import learn

        writer = context.writer
        committer = asyncio.create_task(_commit_often(writer))
        try:
            candidate = await learn(self._job, phase, groups, self._library, context.calls, self._results)
            revision = await self._accept(phase, candidate, context)
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

    def _look_ahead(self, phase: Phase, groups: tuple[Group, ...]) -> RunStatus:
        """Tell once, before anything is learned, what can be gained; ``headroom = stop`` may end the run."""
        if any(result.phase.mode == "train" for result in self._results):
            return "complete"
        from pytest_tfgrpo.harness.run.headroom import look_ahead

        text, self._reason = look_ahead(self._job, phase, groups)
        if text:
            self._notice(text)
        return "incomplete" if self._reason else "complete"

    def _notice(self, text: str) -> None:
        self._observe(Notice(text=text))

    def _interrupted(self) -> RunStatus:
        """Let this task await again after it was cancelled: what was done is still to be written down."""
        _uncancel()
        self._reason = "interrupted"
        return "cancelled"

    def _run(self, status: RunStatus) -> Run:
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
            phases=tuple(self._results),
            library_start=job.library,
            library=self._library,
            reason=redact(self._reason),
            packs=packs_in_use(job.packs, (s.domain for s in job.scenarios)),
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
