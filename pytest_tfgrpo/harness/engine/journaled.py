"""Journaled answers: what an interrupted run has on file is taken from there, and not paid for again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tfgrpo.harness.engine.stage import KnownAnswer

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout
    from pytest_tfgrpo.harness.engine.attempt import Slot
    from pytest_tfgrpo.harness.engine.context import RunContext
    from pytest_tfgrpo.harness.engine.ledger import Ledger
    from pytest_tfgrpo.harness.engine.lineup import Lineup
    from pytest_tfgrpo.harness.sandbox.workspace import Workspace


class Journaled:
    """The rollouts of a cohort that a resumed run has on file."""

    def __init__(self, context: RunContext, lineup: Lineup, ledger: Ledger) -> None:
        self._context, self._lineup, self._ledger = context, lineup, ledger
        self._resumed = context.job.resumed

    def find(self, slot: Slot) -> KnownAnswer | None:
        """Return what is on file; keeps of what cannot be taken only what it cost."""
        if (torn := self._lineup.torn.pop(slot.rollout_id, None)) is not None:
            self._ledger.abandon(torn)
        recorded = self._resumed.rollouts.get(slot.rollout_id)
        if recorded is None:
            return None
        left = self._left(slot, recorded)
        if left is None:
            self._ledger.abandon(recorded)
            return None
        self._context.breaker.know(slot, recorded.status == "ok")
        return KnownAnswer(recorded, left, on_file=True)

    def _left(self, slot: Slot, rollout: Rollout) -> Workspace | None:
        """Return the workspace that a rollout on file left; None when it still had to be looked at."""
        scenario = slot.question.scenario
        waits = rollout.status == "ok" and scenario.checker is not None
        if not waits or rollout.rollout_id in self._resumed.checker_results:
            return slot.call.workspace
        if scenario.fixtures is not None:  # its world is gone, which the test function looks at
            return None
        return self._context.workspaces.left(slot.rollout_id, *self._context.job.made_of(scenario))
