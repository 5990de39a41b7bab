"""Attempts that were made elsewhere, as a source: they answer in the actor's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.engine.attempts.stage import KnownAnswer

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import Slot
    from pytest_tfgrpo.protocols import GivenAttempts


class GivenAnswers:
    """The rollouts of a phase that runs no agent; no prompt of the run led to them, and no lesson of it."""

    def __init__(self, run_id: str, given: GivenAttempts) -> None:
        self._run_id, self._given = run_id, given

    def find(self, slot: Slot) -> KnownAnswer | None:
        """Return the attempt that a slot stands for; None in other phases. Raises EvidenceError."""
        if slot.phase.asks:
            return None
        blank = Rollout(
            rollout_id=slot.rollout_id,
            group_id=slot.group_id,
            run_id=self._run_id,
            scenario_id=slot.question.scenario.id,
            epoch=slot.phase.epoch,
            mode=slot.phase.mode,
            index=slot.index,
            seed=slot.call.seed,
            temperature=slot.phase.temperature,
            status="ok",
        )
        return KnownAnswer(self._given.filled(blank), slot.call.workspace, on_file=False)
