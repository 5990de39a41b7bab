"""The seam of optimizers: groups of scored rollouts in, operations on the library out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_tfgrpo.core.lessons import Library, Operation
from pytest_tfgrpo.core.records import Group, Json, PromptPack, Scenario
from pytest_tfgrpo.harness.calls import Calls


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningContext:
    """One training epoch as an optimizer sees it."""

    run_id: str
    task_id: str
    epoch: int
    actor: str
    groups: tuple[Group, ...]
    """All groups of the epoch, in the order of its draw; also those without spread."""
    scenarios: Mapping[str, Scenario]
    """Train scenarios by id; eval scenarios are never here (decision 21)."""
    packs: Mapping[str, PromptPack]
    """Pack in use, by domain."""
    library: Library
    """The library in force during the epoch."""
    max_words: int
    created_at: str
    """Time to stamp on new experiences."""
    manifest_path: str
    calls: Calls
    """Through which a language model is asked, so that each call is journaled before it has consequences."""
    seed: int
    """Seed of the run."""
    concurrency: int
    """Calls in flight at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What an optimizer would do to the library; every operation is screened before it is applied."""

    operations: tuple[Operation, ...] = ()
    lesson_groups: frozenset[str] = frozenset()
    """Ids of the groups that carried a lesson."""
    note: str = ""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What failed on the way, by reason code; nothing fails silently."""


class Optimizer(Protocol):
    """Turns what the better rollouts did differently into operations on the library."""

    name: str
    identity: Mapping[str, Json]
    """What makes two optimizers the same: the teacher's name as ``model`` and the like; empty without any."""

    async def propose(self, context: LearningContext) -> Proposal:
        """Return the operations that the epoch suggests; equal contexts should give equal proposals."""
        ...
