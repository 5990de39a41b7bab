"""The optimizer that learns nothing: the library stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import LearningContext, Proposal


class NoOptimizer:
    """Proposes nothing."""

    name = "none"
    identity: Mapping[str, Json] = MappingProxyType({})

    async def propose(self, context: LearningContext) -> Proposal:  # noqa: ARG002 - the protocol's signature
        """Return an empty proposal."""
        return Proposal(note="optimizer none: no lessons are learned")
