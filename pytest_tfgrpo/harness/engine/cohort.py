"""A cohort: all groups of one phase, from the actor's calls to scores.

Rollouts are started in order, a bounded number at a time; a finished one is checked beside the next calls,
and a group is scored as soon as it is complete. Records go to the recorder first, then to `observe`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BUDGET, RecordingError, RewarderError
from pytest_tfgrpo.core.records import Failure, Group, Phase, Rollout, Score, Trajectory
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.harness.engine.attempt import AttemptResult, Slot, attempt
from pytest_tfgrpo.harness.engine.breaker import Attempted, LostRollouts
from pytest_tfgrpo.harness.engine.context import RunContext
from pytest_tfgrpo.harness.engine.executors import open_executor
from pytest_tfgrpo.harness.engine.grader import Grader, unreached
from pytest_tfgrpo.harness.engine.workspace_files import with_files
from pytest_tfgrpo.harness.learning.prompts import Ask
from pytest_tfgrpo.harness.metrics.comparison import tally
from pytest_tfgrpo.harness.metrics.costs import is_paid, loose
from pytest_tfgrpo.harness.protocols import ActorCall, as_metered
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.harness.run.schedule import group_id, rollout_id
from pytest_tfgrpo.harness.run.seeds import rollout_seed
from pytest_tfgrpo.harness.sandbox.threads import call_in_daemon
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.harness.scoring.rewarders.scoring import group_of, score
from pytest_tfgrpo.llm.queueing import take_ticket

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.sequential import Watch

COALESCE_S = 0.002
"""Groups that complete within this time are scored in one batch: arrays cost by the call."""


class RewarderTimeout(RewarderError):
    """A rewarder ran over its time limit: the epoch is aborted (decision 18)."""


class Cohort:
    """Runs one phase; `groups` holds what is complete, also when `run` was cancelled or failed."""

    def __init__(self, context: RunContext, phase: Phase, ask: Ask, watch: Watch | None = None) -> None:
        """Prepare the groups of `phase`; `ask` returns the prompt of a scenario id.

        With `watch` scenarios run in its order, and none that may be left out once it is settled.
        """
        self._job = job = context.job
        self._phase = phase
        self._ask = ask
        self._executor = open_executor(job.settings["executor"], concurrency=_most_in_flight(job))
        self._budget = context.budget
        self._metered = as_metered(job.actor) is not None
        self._writer = context.writer
        self._grader = Grader(context)
        self._places = count()
        self._context = context
        self._workspaces = context.workspaces
        self._observe = context.observe
        self._checks: asyncio.TaskGroup
        self._scenarios: dict[str, Scenario] = {}
        self._watch = watch
        self._begun = {
            r.scenario_id
            for r in job.resumed.rollouts.values()
            if r.group_id == group_id(job.run_id, phase, r.scenario_id)
        }
        self.settled: list[str] = []
        """Ids of scenarios that were skipped because the gate was already decided."""
        self._unready = self._all_slots()
        self._ready: deque[Slot] = deque()
        self._open: dict[str, list[Rollout]] = {}
        self._complete: list[list[Rollout]] = []
        self._wake = asyncio.Event()
        self._finished = False
        self.groups: dict[str, Group] = {}
        """Scored groups by scenario id."""
        self._breaker = context.breaker
        self._lost = LostRollouts(
            context.breaker, context.workspaces, attempt=self._attempted, take=self._take, forget=self._forget
        )
        self._paid: list[Rollout] = []
        self._abandoned = [
            r for r in job.resumed.abandoned if r.group_id == group_id(job.run_id, phase, r.scenario_id)
        ]

    @property
    def excluded(self) -> set[str]:
        """Ids of scenarios that a marked test function skipped."""
        return self._grader.excluded

    @property
    def loose(self) -> tuple[Rollout, ...]:
        """Rollouts paid for that are in no group."""
        return loose(self.groups.values(), self._paid, self._abandoned)

    async def run(self) -> None:
        """Run check and score all rollouts; returns early when the budget is used up.

        Raises RewarderTimeout, RewarderError, RecordingError, JournalError.
        """
        try:
            async with asyncio.TaskGroup() as scoring:
                scoring.create_task(self._score_groups())
                async with asyncio.TaskGroup() as self._checks:
                    await self._executor.run(self._slots(), self._try)
                    await self._lost.make_again(self._executor)
                self._finished = True
                self._wake.set()
        except BaseExceptionGroup as group:
            error = _first(group)
            if isinstance(error, RewarderError | RecordingError):
                self._keep_unscored()
            raise error from None
        finally:
            self._lost.forget()
        await self._writer.commit()

    def _slots(self) -> Iterator[Slot]:
        """Yield the slots in order, from those made ready while the calls before them were waited for."""
        while self._ready or self._make_ready():
            slot = self._ready.popleft()
            if not self._is_left_out(slot):
                yield slot

    def _is_left_out(self, slot: Slot) -> bool:
        """Return whether the gate is decided without this slot; a started scenario is finished."""
        scenario = slot.question.scenario
        if scenario.id in self._begun or scenario.min_score is not None:
            return False
        if slot.index == 0 and self._is_settled():
            self.settled.append(scenario.id)
        if scenario.id not in self.settled[-1:]:
            self._begun.add(scenario.id)
            return False
        return True

    def _is_settled(self) -> bool:
        on_file = self._phase.epoch in self._job.resumed.settled and self._phase.mode == "eval"
        return on_file or (self._watch is not None and self._watch.settled)

    def _make_ready(self) -> bool:
        """Make one more slot ready, if there is one."""
        slot = next(self._unready, None)
        if slot is not None:
            self._ready.append(slot)
        return slot is not None

    def _all_slots(self) -> Iterator[Slot]:
        run_id, phase, settings = self._job.run_id, self._phase, self._job.settings
        tracing = self._job.tracing
        for scenario_id in self._watch.order if self._watch is not None else phase.scenarios:
            question = self._ask(scenario_id)
            scenario = self._scenarios[scenario_id] = question.scenario
            for index in range(phase.rollouts):
                name = rollout_id(run_id, phase, scenario_id, index)
                workspace = self._workspaces.new(name, scenario.attachments)
                call = ActorCall(
                    task=question.task,
                    prompt=question.prompt,
                    temperature=phase.temperature,
                    seed=rollout_seed(settings["seed"], scenario, phase, index),
                    workspace=workspace,
                    timeout_s=scenario.timeout_s or settings["timeout_s"],
                    answer_max_bytes=settings["answer_max_bytes"],
                    traceparent=partial(tracing.traceparent, name) if tracing is not None else None,
                )
                yield Slot(
                    question=question,
                    index=index,
                    rollout_id=name,
                    group_id=group_id(run_id, phase, scenario_id),
                    call=call,
                )

    async def _try(self, slot: Slot) -> None:
        take_ticket(next(self._places))
        recorded = self._job.resumed.rollouts.get(slot.rollout_id)
        if recorded is not None:
            left = self._left(slot, recorded)
            if left is not None:
                self._breaker.know(slot, recorded.status == "ok")
                self._checks.create_task(self._repeat(slot, recorded, left))
                return
            self._abandon(recorded)
        await self._lost.make(slot)

    async def _attempted(self, slot: Slot) -> Attempted | None:
        """Return how an attempt ended, counted against the budget; None when that does not allow it."""
        began = asyncio.get_running_loop().time()
        outcome = await self._attempt(slot)
        if outcome is None:
            return None
        rollout = self._rollout(slot, outcome)
        if not self._metered:
            self._budget.spend(rollout)
        return Attempted(slot, rollout, outcome, began)

    def _forget(self, rollout: Rollout) -> None:
        """Keep of an attempt that is no result what it may have cost."""
        if is_paid(rollout):
            self._abandon(rollout)

    def _take(self, attempted: Attempted) -> None:
        slot, rollout, outcome, _ = attempted
        if outcome.failure is not None and outcome.failure.code == BUDGET:
            if rollout.frames:  # else nothing was asked, and nothing is paid for
                self._abandon(rollout)
            return
        # The next call starts before this one is checked: calls are what a run waits for.
        self._checks.create_task(self._check(slot, rollout, outcome))

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
        tracing, cancelled = self._job.tracing, partial(self._cancel, slot)
        if tracing is None:
            return await attempt(self._job.actor, slot.call, cancelled)
        around = tracing.around(slot.rollout_id, slot.question.prompt)
        return await attempt(self._job.actor, slot.call, cancelled, around)

    def _cancel(self, slot: Slot, outcome: AttemptResult) -> None:
        """Keep an attempt that the end of the run cut short, where it is known to have cost something."""
        if any(frame.tokens or frame.cost_usd for frame in outcome.frames):
            failure = Failure(code="cancelled", message="the run ended before its result was known")
            self._abandon(replace(self._rollout(slot, outcome), status="cancelled", failure=failure))

    def _abandon(self, rollout: Rollout) -> None:
        self._abandoned.append(self._writer.abandoned(rollout))

    def _rollout(self, slot: Slot, outcome: AttemptResult) -> Rollout:
        made = Trajectory(answer=outcome.answer, frames=outcome.frames)
        return Rollout(
            rollout_id=slot.rollout_id,
            group_id=slot.group_id,
            run_id=self._job.run_id,
            scenario_id=slot.question.scenario.id,
            epoch=self._phase.epoch,
            mode=self._phase.mode,
            index=slot.index,
            seed=slot.call.seed,
            temperature=slot.call.temperature,
            status=outcome.status,
            answer=outcome.answer,
            frames=outcome.frames,
            extra=outcome.extra,
            decoy=outcome.decoy,
            started_at=outcome.started_at,
            failure=outcome.failure,
            tokens=made.tokens,
            cost_usd=made.cost_usd,
            latency_ms=outcome.latency_ms,
            experiences=slot.question.experiences,
            left_out=slot.question.left_out,
            prompt_stamp=slot.question.prompt_stamp,
        )

    async def _check(self, slot: Slot, rollout: Rollout, outcome: AttemptResult) -> None:
        try:
            rollout = await self._checked(slot, rollout)
        except asyncio.CancelledError:
            self._cancel(slot, outcome)
            raise
        rollout = self._writer.rollout(rollout)
        self._paid.append(rollout)
        await self._settle(slot, rollout, slot.call.workspace)

    async def _checked(self, slot: Slot, rollout: Rollout) -> Rollout:
        """Return a rollout with what it did to its workspace, and with its checks."""
        scenario = slot.question.scenario
        await asyncio.sleep(0)  # the next call, made a task just now, goes first
        self._make_ready()
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
        return self._workspaces.left(slot.rollout_id, slot.call.workspace.attachments)

    async def _repeat(self, slot: Slot, rollout: Rollout, workspace: Workspace) -> None:
        """Take a rollout from the journal instead of paying for it again."""
        self._paid.append(rollout)
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
            self._finish(slot, judged)

    def _finish(self, slot: Slot, rollout: Rollout) -> None:
        self._observe(rollout)
        group = self._open.setdefault(slot.group_id, [])
        group.append(rollout)
        if len(group) == self._phase.rollouts:
            del self._open[slot.group_id]
            if rollout.scenario_id not in self._grader.excluded:
                self._complete.append(sorted(group, key=lambda r: r.index))
                self._wake.set()

    async def _score_groups(self) -> None:
        """Score complete groups in batches: whatever is ready when the last batch is done."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(COALESCE_S)
            self._wake.clear()
            while self._complete:
                ready = list(self._complete)
                await self._score(ready)
                del self._complete[: len(ready)]
            if self._finished:
                return

    async def _score(self, ready: list[list[Rollout]]) -> None:
        rollouts = [rollout for group in ready for rollout in group]
        scenarios = {r.scenario_id: self._scenarios[r.scenario_id] for r in rollouts}
        extra = self._job.rewarders
        if extra:
            limit = self._job.settings["rewarder_timeout_s"]
            try:
                async with asyncio.timeout(limit):
                    scores = await call_in_daemon(score, rollouts, scenarios, extra)
            except TimeoutError:
                names = ", ".join(rewarder.name for rewarder in extra)
                raise RewarderTimeout(
                    f"rewarders ({names}) exceeded rewarder_timeout_s = {limit:g}"
                ) from None
        else:
            scores = score(rollouts, scenarios)
        at = 0
        for members in ready:
            group = group_of(members, scores[at : at + len(members)], scenarios[members[0].scenario_id])
            at += len(members)
            self._writer.group(group)
            self.groups[group.scenario_id] = group
            self._observe(group)
        if self._watch is not None:
            done = [self.groups[members[0].scenario_id] for members in ready]
            if self._watch.feed(tally(done, {id: s.stamp for id, s in scenarios.items()})):
                self._writer.settled(self._phase.epoch)

    def _keep_unscored(self) -> None:
        """Keep groups that no rewarder scored, without scores: their metrics still count (decision 18)."""
        for members in [*self._complete, *self._open.values()]:
            scores = [
                Score(rollout_id=r.rollout_id, gt_score=None, reward=None, relative_rank=None, advantage=None)
                for r in members
            ]
            group = group_of(members, scores, self._scenarios[members[0].scenario_id])
            self._writer.metrics(group)
            self.groups[group.scenario_id] = group


def _most_in_flight(job: Job) -> int:
    """Return how many rollouts are in flight at most."""
    wanted: int = job.settings["concurrency"]
    metered = as_metered(job.actor)
    served = None if metered is None else metered.concurrency
    return wanted if served is None else min(wanted, served)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
