"""The heuristic optimizer: compares winners with losers of the same group, kind of task by kind of task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.leaving_out import SETTLED
from pytest_tfgrpo.protocols import LearningContext, Proposal

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.optimizer.heuristic_lessons import HeuristicLessons


class HeuristicOptimizer:
    """Deterministic, offline, free."""

    name = "heuristic"
    identity: Mapping[str, Json] = MappingProxyType({})

    def __init__(self, learn: Callable[[LearningContext, Iterable[Group]], HeuristicLessons]) -> None:
        """`learn` returns what the groups of an epoch show."""
        self._learn = learn

    async def propose(self, context: LearningContext) -> Proposal:
        """Return lessons from groups with mixed results, as additions or revisions of active lessons."""
        if not any(group.informative for group in context.groups):
            return Proposal(note="no group had mixed results, so there was nothing to learn from")
        found = self._learn(context, (group for group in context.groups if group.informative))
        return Proposal(
            operations=tuple(o for o in found.operations if not _is_harm(o, context)),
            lesson_groups=frozenset(found.lesson_groups),
            note=f"kinds of task without a difference in tools, arguments or form of answer: {found.mute}"
            if found.mute
            else "",
        )


def _is_harm(operation: Operation, context: LearningContext) -> bool:
    """Return whether an operation brings in what an earlier epoch refused, settled as harm."""
    new = operation.experience
    harm = {trial.key for _, trial in context.refused if trial.helps <= SETTLED}
    return new is not None and content_key(new) in harm
