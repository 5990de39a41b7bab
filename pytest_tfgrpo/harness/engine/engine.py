"""The engine: a run is a fold over its phases, ``(scenarios, library) -> (result, library')``.

It knows neither pytest nor the bus: it receives `observe` and the results of marked test functions.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.clock import utc_now
from pytest_tfgrpo.core.errors import BudgetError, JournalError, OptimizerError, RecordingError, RewarderError
from pytest_tfgrpo.core.lessons import Revision
from pytest_tfgrpo.core.records import CheckerResult, Group, Phase, PhaseResult, Rollout, Run
from pytest_tfgrpo.harness.engine.checker_results import CheckerResults
from pytest_tfgrpo.harness.engine.cohort import Cohort
from pytest_tfgrpo.harness.engine.executors import open_executor
from pytest_tfgrpo.harness.engine.writer import RunWriter
from pytest_tfgrpo.harness.gate.sequential import OpenWatch
from pytest_tfgrpo.harness.learning.acceptance.decision import decide, limits_of, undecided
from pytest_tfgrpo.harness.learning.acceptance.dev_sweeps import Ask, DevSweeps, Unfinished
from pytest_tfgrpo.harness.learning.prompts import PromptBuilder
from pytest_tfgrpo.harness.learning.step import learn
from pytest_tfgrpo.harness.protocols import as_metered
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.harness.sandbox.workspace import work_folder
from pytest_tfgrpo.harness.suite.packs import packs_in_use
from pytest_tfgrpo.llm.budget import Budget
from pytest_tfgrpo.llm.calls import Calls

End: TypeAlias = Literal["complete", "incomplete", "aborted"]
COMMIT_EVERY_S = 0.02


class Engine:
    """Carries out one job, once."""

    def __init__(
        self,
        job: Job,
        *,
        folder: Path | None,
        observe: Callable[[object], None],
        watch: OpenWatch | None = None,
        paced: bool = False,
    ) -> None:
        """`folder` receives the run's files (None: no files); `observe` receives every record, in order.

        `watch` may end a sweep as soon as the gate is decided; without it every sweep runs completely.
        When `paced`, a phase starts only once `open_phase` has been called for it or a later one.
        """
        self._job = job
        self._opened = {phase.epoch: asyncio.Event() for phase in job.phases}
        if not paced:
            self.open_phase(max(self._opened, default=0))
        self._folder = folder
        self._observe = observe
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

        Raises JournalError or StoreError when its files cannot be written.
        """
        writer = RunWriter(self._folder, self._job)
        budget = self._begin_budget()
        calls = Calls(writer.call, self._job.resumed.calls)
        with work_folder(self._job.work) as work:
            self._dev = DevSweeps(
                self._job.scenarios,
                self._job.settings,
                prompts=lambda library: PromptBuilder(self._job, library).ask,
                sweep=partial(self._sweep_dev, writer, budget, calls, work),
            )
            try:
                end: End = "complete"
                for phase in self._job.phases:
                    end = await self._turn(phase)
                    if end == "complete":
                        end = await self._phase(phase, writer, budget, calls, work)
                    if end != "complete":
                        break
                run = self._run(end)
                writer.finish(run)
                if end == "complete":  # else a resumed test function may still look into a workspace
                    shutil.rmtree(work, ignore_errors=True)
            finally:
                with suppress(JournalError):  # the error that brought us here says more
                    writer.close()
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

    def _places(self) -> int:
        """Return how many rollouts are in flight at most."""
        wanted: int = self._job.settings["concurrency"]
        metered = as_metered(self._job.actor)
        served = None if metered is None else metered.concurrency
        return wanted if served is None else min(wanted, served)

    async def _phase(self, phase: Phase, writer: RunWriter, budget: Budget, calls: Calls, work: Path) -> End:
        prompts = PromptBuilder(self._job, self._library, phase)
        self._dev_groups, self._dev_loose = [], []
        cohort = self._cohort(phase, prompts.ask, writer, budget, calls, work)
        if self._open_watch is not None:
            cohort.watch(self._open_watch(phase, self._results, self._library.hash))
        end = await self._carry_out(cohort, writer, budget)
        groups = tuple(cohort.groups[s] for s in phase.scenarios if s in cohort.groups)
        revision = None
        if end == "complete" and phase.mode == "train":
            end, revision = await self._learn(phase, groups, writer, calls)
        result = PhaseResult(
            phase=phase,
            groups=groups,
            status=end,
            library_hash=self._library.hash,
            revision=revision,
            skipped_experiences=prompts.skipped,
            excluded=tuple(sorted(cohort.excluded)),
            reason=self._reason,
            calls=calls.of(phase.epoch),
            loose=(*cohort.loose, *self._dev_loose),
            dev=tuple(sorted(self._dev_groups, key=lambda group: group.group_id)),
            settled=tuple(sorted(cohort.settled)),
        )
        self._results.append(result)
        if revision is not None:
            self._library = revision.library
        writer.phase(result, self._run("incomplete"))
        self._observe(result)
        return end

    def _cohort(
        self, phase: Phase, ask: Ask, writer: RunWriter, budget: Budget, calls: Calls, work: Path
    ) -> Cohort:
        return Cohort(
            self._job,
            phase,
            ask,
            executor=open_executor(self._job.settings["executor"], concurrency=self._places()),
            budget=budget,
            calls=calls,
            writer=writer,
            checker_results=self._checker_results,
            work=work,
            observe=self._observe,
        )

    async def _sweep_dev(
        self, writer: RunWriter, budget: Budget, calls: Calls, work: Path, phase: Phase, ask: Ask
    ) -> Mapping[str, Group]:
        """Carry out one sweep of the dev split; raises Unfinished."""
        self._observe(phase)
        cohort = self._cohort(phase, ask, writer, budget, calls, work)
        end = await self._carry_out(cohort, writer, budget)
        self._dev_groups += cohort.groups.values()
        self._dev_loose += cohort.loose
        if end != "complete":
            raise Unfinished(end)
        return cohort.groups

    async def _accept(self, phase: Phase, candidate: Revision, writer: RunWriter) -> Revision:
        """Return what of `candidate` comes into force; raises Unfinished."""
        job = self._job
        known = job.resumed.revisions.get(phase.epoch)
        if not phase.dev or self._dev is None or candidate.acceptance is not None:
            return known or undecided(candidate, job.scenarios, job.settings)
        writer.candidate(candidate)
        await writer.commit()
        self._dev.begin(phase)
        decided = await decide(self._library, candidate, self._dev, limits_of(phase, job.settings))
        return known or decided

    async def _turn(self, phase: Phase) -> End:
        """Wait until `phase` may start; nothing of it is paid for before."""
        try:
            await self._opened[phase.epoch].wait()
        except asyncio.CancelledError:
            _forget_cancellation()
            self._reason = "interrupted"
            return "incomplete"
        return "complete"

    async def _carry_out(self, cohort: Cohort, writer: RunWriter, budget: Budget) -> End:
        committer = asyncio.create_task(_commit_often(writer))
        try:
            await cohort.run()
        except asyncio.CancelledError:
            _forget_cancellation()
            self._reason = "interrupted"
            return "incomplete"
        except (RewarderError, RecordingError) as error:
            self._reason = str(error)
            return "aborted"
        finally:
            committer.cancel()
        self._reason = budget.exhausted or self._checker_results.missing
        return "incomplete" if self._reason else "complete"

    async def _learn(
        self, phase: Phase, groups: tuple[Group, ...], writer: RunWriter, calls: Calls
    ) -> tuple[End, Revision | None]:
        committer = asyncio.create_task(_commit_often(writer))
        try:
            candidate = await learn(self._job, phase, groups, self._library, calls, self._results)
            revision = await self._accept(phase, candidate, writer)
            self._warnings += writer.revision(revision)
            await writer.commit()
        except asyncio.CancelledError:
            _forget_cancellation()
            self._reason = "interrupted"
            return "incomplete", None
        except Unfinished as unfinished:
            return unfinished.end, None
        except (OptimizerError, RecordingError) as error:
            self._reason = str(error)
            return "aborted", None
        except BudgetError as error:
            self._reason = str(error)
            return "incomplete", None
        finally:
            committer.cancel()
        for operation in revision.applied:
            if operation.experience is not None:
                self._observe(operation.experience)
        return "complete", revision

    def _run(self, status: End) -> Run:
        job = self._job
        skipped = max((r.skipped_experiences for r in self._results), default=0)
        warnings = list(self._warnings)
        if skipped:
            warnings.append(
                f"{skipped} lessons were left out: they were learned with another prompt pack; "
                "review them and run `tfgrpo library rebase`"
            )
        return Run(
            run_id=job.run_id,
            task_id=job.task_id,
            status=status,
            started_at=job.started_at,
            finished_at=utc_now(),
            settings=job.settings,
            stamps=job.stamps,
            versions=job.versions,
            scenarios=job.scenarios,
            phases=tuple(self._results),
            library_start=job.library,
            library=self._library,
            reason=self._reason,
            warnings=tuple(warnings),
            partial_selection=job.partial_selection,
            identities=job.identities,
            preflight=job.preflight,
            packs=packs_in_use(job.packs, (s.domain for s in job.scenarios)),
        )


async def _commit_often(writer: RunWriter) -> None:
    with suppress(JournalError):  # the commit at the end of the phase raises it
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            await writer.commit()


def _forget_cancellation() -> None:
    """Let this task await again after it was cancelled: what was done is still to be written down."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
