"""Tracing as a stage: the spans of an agent become children of its rollout's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.engine.attempts.stage import Stage

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot
    from pytest_tfgrpo.engine.attempts.stage import MakeAttempt
    from pytest_tfgrpo.protocols import Tracing


class TracedAttempts(Stage):
    """Makes the span of a rollout current in the task of its agent, and names it to agents elsewhere."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
        """Return how an attempt ended that is traced."""
        name, tracing = slot.rollout_id, self._tracing
        call = replace(slot.call, traceparent=partial(tracing.traceparent, name))
        return await make(replace(slot, call=call, within=tracing.around(name, slot.question.prompt)))
