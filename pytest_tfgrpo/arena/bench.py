"""A run whose sweeps become known one after another: the engine makes, checks, scores and keeps each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BudgetError, OutageError, RewarderError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Run, RunStatus, header_fields
from pytest_tfgrpo.engine.attempts.deliveries import FromTests
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.lifetime import calling, open_run, reach_models, remove_workspaces
from pytest_tfgrpo.engine.lineup import Arm
from pytest_tfgrpo.engine.observers import Observers
from pytest_tfgrpo.engine.phases.cohort import Cohort, carry_out
from pytest_tfgrpo.engine.run_end import RunEnd
from pytest_tfgrpo.llm.limits.slots import endpoint_uses
from pytest_tfgrpo.llm.prices import price_uses
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.suite.packs import packs_in_use

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.preparation.prepare import Prepared


class Bench:
    """Carries out sweeps of one run; after a kill those on file are taken from there."""

    def __init__(self, context: RunContext) -> None:
        """Begin with nothing carried out."""
        self.context = context
        self.results: list[PhaseResult] = []
        self._reached = False

    async def sweep(self, arms: Sequence[Arm]) -> list[Sequence[Group]]:
        """Run phases side by side, and return the groups of each, in the order of its scenarios.

        A phase lacks the groups of scenarios whose prompts a later one has too. Raises BudgetError,
        OutageError or RewarderError where it ends before.
        """
        if not self._reached:
            require_complete(await reach_models(self.context.job, arms[0].phase, self.context.calls))
            self._reached = True
        cohort = Cohort(self.context, arms)
        end = await carry_out(cohort, self.context)
        phases = [arm.phase for arm in arms]
        self.results += [
            cohort.result_of(phase, end.status, self.context.job.library.hash) for phase in phases
        ]
        require_complete(end, outage=self.context.breaker.reason)
        return [cohort.groups_of(phase) for phase in phases]


def require_complete(end: RunEnd, outage: str | None = None) -> None:
    """Raise what says why something did not run to its end."""
    if end.status == "cancelled":
        raise asyncio.CancelledError
    if end.status == "aborted":
        raise RewarderError(end.reason)
    if not end.complete:
        raise OutageError(end.reason) if end.reason == outage else BudgetError(end.reason)


@asynccontextmanager
async def open_bench(prepared: Prepared, gauge: Gauge) -> AsyncIterator[Bench]:
    """Open the run of a job for sweeps, and write its end."""
    job, warnings = prepared.job, list(prepared.job.warnings)
    async with (
        releasing(job),
        open_run(
            job,
            prepared.folder,
            observe=Observers((), retell=False),
            warn=warnings.append,
            gauge=gauge,
            tests=FromTests(),
        ) as context,
    ):
        bench = Bench(context)
        status: RunStatus = "incomplete"
        try:
            async with calling(context):
                await context.stages.begin(context.workspaces)
                yield bench
            status = "complete"
        finally:
            await remove_workspaces(context.workspaces, warnings.append)
            context.writer.finish(run_of_bench(bench, status, warnings))


def run_of_bench(bench: Bench, status: RunStatus, warnings: Sequence[str] = ()) -> Run:
    """Return the run of the sweeps so far."""
    job, calls = bench.context.job, bench.context.calls
    return Run(
        **header_fields(job) | {"warnings": tuple(warnings)},
        status=status,
        finished_at=utc_now(),
        phases=tuple(replace(result, calls=calls.of(result.phase.epoch)) for result in bench.results),
        library_start=job.library,
        library=job.library,
        packs=packs_in_use(job.packs, (s.domain for s in job.scenarios)),
        endpoints=endpoint_uses(job.models.values()),
        prices=price_uses(job.models.values()),
    )


@asynccontextmanager
async def releasing(job: Job) -> AsyncIterator[None]:
    """Release what the parts of a job hold, at its end."""
    try:
        yield
    finally:
        closing: tuple[Callable[[], Awaitable[None]], ...] = (job.actor.aclose, *job.closing)
        for close in closing:
            with suppress(Exception):  # the run is over, and each of them must have its turn
                await close()


def phase_of(epoch: int, like: Phase, scenarios: Sequence[str]) -> Phase:
    """Return a phase like another one for some scenarios; one that stands there twice runs twice."""
    sizes = {id_: scenarios.count(id_) for id_ in scenarios}
    return replace(
        like, epoch=epoch, scenarios=tuple(sizes), sizes=sizes, rollouts=max(sizes.values(), default=0)
    )
