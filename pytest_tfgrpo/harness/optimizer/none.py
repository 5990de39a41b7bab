"""The optimizer that learns nothing: the library stays as it is."""

from __future__ import annotations

from pytest_tfgrpo.harness.optimizer.protocol import LearningContext, Proposal


class NoOptimizer:
    """Proposes nothing."""

    name = "none"

    async def propose(self, context: LearningContext) -> Proposal:  # noqa: ARG002 - the protocol's signature
        """Return an empty proposal."""
        return Proposal(note="optimizer none: no lessons are drawn")
