"""Rollouts of test functions whose fixtures are set up before their agent runs, one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.engine.observers import LostRollout

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import Slot
    from pytest_tfgrpo.engine.attempts.breaker import Attempted
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger
    from pytest_tfgrpo.engine.phases.attempts import Attempts


class InTurn:
    """Makes such rollouts, each once its fixtures are set up; they hold no place while they wait."""

    def __init__(self, context: RunContext, attempts: Attempts, ledger: Ledger) -> None:
        self._context, self._attempts, self._ledger = context, attempts, ledger

    async def make(self, slot: Slot) -> Attempted | None:
        """Return the attempt that is the result, the second where the first was lost.

        None: its fixtures are never set up, or the run may not make it.
        """
        breaker = self._context.breaker
        attempted = await self._once(slot)
        if attempted is not None and breaker.is_worth_another(attempted.outcome):
            self._ledger.forget(attempted.rollout)
            await self._attempts.undo(slot)
            self._context.tests.agents.await_again(slot.rollout_id)
            self._context.observe(LostRollout(rollout_id=slot.rollout_id))
            attempted = await self._once(slot)
        if attempted is not None:  # its item waits for it, so it is not held back
            breaker.first.holds(attempted.outcome, slot.question.scenario.id)
        return attempted

    async def _once(self, slot: Slot) -> Attempted | None:
        agent = await self._context.tests.agents.of(slot.rollout_id)
        if agent is None or not await self._context.breaker.passing():
            return None
        with self._context.breaker.attempting():
            return await self._attempts.make(replace(slot, actor=agent))
