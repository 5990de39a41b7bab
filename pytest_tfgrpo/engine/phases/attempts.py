"""Attempts at rollouts: within the budget, each in its stages, once."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot, attempt, rollout_of
from pytest_tfgrpo.engine.attempts.breaker import Attempted
from pytest_tfgrpo.llm.limits.queueing import take_ticket
from pytest_tfgrpo.protocols import as_metered

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger


class Attempts:
    """Makes the attempts of a cohort."""

    def __init__(self, context: RunContext, ledger: Ledger) -> None:
        self._context, self._ledger = context, ledger
        self._metered = as_metered(context.job.actor) is not None
        self._places = count()
        self._surrounded = context.stages.around(self._ask)
        self._ended: dict[str, AttemptResult] = {}
        """How attempts ended whose stages go on, by the id of their rollout."""

    def queue_up(self) -> None:
        """Take a place in the queue for the budget, for the rollout of the present task."""
        take_ticket(next(self._places))

    async def make(self, slot: Slot) -> Attempted | None:
        """Return how an attempt ended, counted against the budget; None when that does not allow it."""
        began = asyncio.get_running_loop().time()
        try:
            outcome = await self._admitted(slot)
        except BaseException:  # the run ends
            if (ended := self._ended.get(slot.rollout_id)) is not None:
                self._ledger.cancel(slot, ended)
            raise
        finally:
            self._ended.pop(slot.rollout_id, None)
        if outcome is None:
            return None
        rollout = rollout_of(slot, outcome, self._context.job.run_id)
        self._context.gauge.pay(rollout)
        if not self._metered:
            self._context.job.budget.spend(rollout)
        return Attempted(slot, rollout, outcome, began)

    async def undo(self, slot: Slot) -> None:
        """Undo what an attempt did that is no result, in its stages, then in its workspace."""
        await self._context.stages.undo(slot)
        self._context.workspaces.renew(slot.call.workspace)

    async def _admitted(self, slot: Slot) -> AttemptResult | None:
        budget = self._context.job.budget
        if self._metered:  # its model calls reserve budget themselves, one by one
            return None if budget.exhausted else await self._surrounded(slot)
        if not await budget.admit():
            return None
        try:
            return await self._surrounded(slot)
        finally:
            budget.release()

    async def _ask(self, slot: Slot) -> AttemptResult:
        context = self._context
        actor = context.executor.place(slot.actor or context.job.actor)
        context.gauge.attempts.begin(slot.rollout_id)
        try:
            user = None if slot.user is None else slot.user()
            ended = await attempt(actor, slot.call, partial(self._ledger.cancel, slot), slot.within, user)
        finally:
            context.gauge.attempts.end(slot.rollout_id)
        self._ended[slot.rollout_id] = ended
        return ended
