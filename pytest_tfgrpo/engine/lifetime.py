"""The lifetime of a run: what it opens, and closes in the opposite order whatever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BudgetError, JournalError, OutageError
from pytest_tfgrpo.core.files import WORKSPACES
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.attempts.breaker import Breaker
from pytest_tfgrpo.engine.attempts.decoys import Decoys, clear_decoys
from pytest_tfgrpo.engine.attempts.deliveries import FromTests
from pytest_tfgrpo.engine.attempts.lag import watching_lag
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.engine.executors.registry import open_executor
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.observers import Notice, Observers
from pytest_tfgrpo.engine.resumption import begin_budget
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd, incomplete, interrupted, uncancel
from pytest_tfgrpo.engine.run_writer import RunWriter
from pytest_tfgrpo.engine.stages.registry import StageSetup, open_stages
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces

if TYPE_CHECKING:
    from pytest_tfgrpo.runs.job import Job


@asynccontextmanager
async def open_run(
    job: Job,
    folder: Path | None,
    *,
    observe: Observers,
    warn: Callable[[str], None],
    gauge: Gauge,
    tests: FromTests,
) -> AsyncIterator[RunContext]:
    """Open what a run needs from its first phase until its end is written."""

    def notice(text: str) -> None:
        observe(Notice(text=text))

    begin_budget(job, warn)
    async with AsyncExitStack() as stack:
        writer = RunWriter(folder, job)
        stack.callback(_close_files, writer)
        stack.callback(clear_decoys, folder)
        workspaces = open_workspaces(job, folder)
        stack.callback(workspaces.close, keep=True)
        context = RunContext(
            job=job,
            scenarios={scenario.id: scenario for scenario in job.scenarios},
            writer=writer,
            calls=Calls(writer.call, job.resumed.calls, None if job.replayed else notice),
            gauge=gauge,
            executor=open_executor(job),
            breaker=Breaker(notice, watching=not job.replayed),
            tests=tests,
            workspaces=workspaces,
            decoys=Decoys(job, folder),
            stages=open_stages(StageSetup(job, writer, warn)),
            observe=observe,
            warn=warn,
        )
        stack.callback(context.check_threads.close)
        gauge.begin(job.budget, context.calls, job.resumed, job.models.values())
        yield context


@asynccontextmanager
async def calling(context: RunContext) -> AsyncIterator[None]:
    """Hold what the attempts of a run need: its executor, its stages, and what watches the event loop."""
    async with AsyncExitStack() as stack:
        if not context.job.replayed:
            stack.enter_context(watching_lag(context.warn))
        for text in context.executor.notes:
            context.observe(Notice(text=text))
        stack.push_async_callback(_end_executor, context)
        stack.push_async_callback(_despite_interrupt, context.stages.close)  # a resumed run tries the rest
        yield


async def _end_executor(context: RunContext) -> None:
    """End the workers."""
    await _despite_interrupt(context.executor.aclose)
    for text in context.executor.warnings:
        context.warn(text)


async def _despite_interrupt(close: Callable[[], Awaitable[None]]) -> None:
    """Close something; the run ends all the same if it is interrupted again meanwhile."""
    try:
        await close()
    except asyncio.CancelledError:
        uncancel()


def _close_files(writer: RunWriter) -> None:
    with suppress(JournalError):  # the error that brought us here says more
        writer.close()


def open_workspaces(job: Job, folder: Path | None) -> RunWorkspaces:
    """Return where the workspaces of a run are; a resumed run finds them where somebody may still look."""
    needed = any(s.checker is not None or s.teardown is not None for s in job.scenarios)
    pointer = folder / WORKSPACES if folder is not None and needed else None
    return RunWorkspaces(job.run_id, job.temporary, pointer)


async def remove_workspaces(
    workspaces: RunWorkspaces, warn: Callable[[str], None], *, keep: bool = False
) -> None:
    """Remove the workspaces of a run that ends; what cannot be removed becomes a warning."""
    try:
        left = await call_in_daemon(workspaces.close, keep=keep)
    except asyncio.CancelledError:  # the run has ended, and the removal goes on by itself
        uncancel()
        return
    if left:
        warn(left)


async def reach_models(job: Job, phase: Phase, calls: Calls) -> RunEnd:
    """Call each model besides the actor's once before the first phase, while nothing is paid for yet."""
    one_each = {model.name: (role, model) for role, model in job.reach.items()}
    reaching = (calls.reach(model, role=role, epoch=phase.epoch) for role, model in one_each.values())
    try:
        found = await asyncio.gather(*reaching, return_exceptions=True)
    except asyncio.CancelledError:
        return interrupted()
    end = COMPLETE
    for error in found:
        if isinstance(error, BaseException):
            if not isinstance(error, OutageError | BudgetError):
                raise error
            end = incomplete(str(error))
    return end
