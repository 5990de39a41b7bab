"""What the attempts of a cohort cost that are in no group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_tfgrpo.core.records import Failure, Phase, Rollout
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot, rollout_of
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.metrics.paid import is_paid
from pytest_tfgrpo.runs.schedule import group_id


class Ledger:
    """Rollouts that wait for their group, and attempts that are no result."""

    def __init__(self, context: RunContext, phases: Sequence[Phase]) -> None:
        """Begin with what a resumed run abandoned in some phases."""
        self._writer, self._run_id = context.writer, context.job.run_id
        self.paid: dict[str, Rollout] = {}
        """Rollouts by id that were paid for and are in no group yet."""
        self.abandoned = [
            one
            for one in context.job.resumed.abandoned
            if any(one.group_id == group_id(self._run_id, phase, one.scenario_id) for phase in phases)
        ]

    def pay(self, rollout: Rollout) -> None:
        """Keep a rollout that waits for its group."""
        self.paid[rollout.rollout_id] = rollout

    def settle(self, rollouts: Sequence[Rollout]) -> None:
        """Let go of rollouts that are in a group."""
        for one in rollouts:
            self.paid.pop(one.rollout_id, None)

    def abandon(self, rollout: Rollout) -> None:
        """Keep an attempt that is no result."""
        self.abandoned.append(self._writer.abandoned(rollout))

    def forget(self, rollout: Rollout) -> None:
        """Keep of an attempt that is no result what it may have cost."""
        if is_paid(rollout):
            self.abandon(rollout)

    def cancel(self, slot: Slot, outcome: AttemptResult) -> None:
        """Keep an attempt that the end of the run cut short, where it is known to have cost something."""
        if any(frame.tokens or frame.cost_usd for frame in outcome.frames):
            failure = Failure(code="cancelled", message="the run ended before its result was known")
            made = rollout_of(slot, outcome, self._run_id)
            self.abandon(replace(made, status="cancelled", failure=failure))
