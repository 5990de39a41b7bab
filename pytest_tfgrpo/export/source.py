"""What rows are made of: scored groups of attempts, read one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from pytest_tfgrpo.core.records import Group, Rollout
from pytest_tfgrpo.core.scenarios import Prompt, Scenario

CALLS_TOOLS, HAS_LOGPROBS, HAS_TOKEN_IDS = 1, 2, 4
"""Flags of a group: what its rollouts have that others may lack."""


class ExportSource(Protocol):
    """A run, or evidence."""

    left_out: Counter[str]
    """Rollouts that are in no group, by reason."""

    @property
    def name(self) -> str:
        """What it is, for a reader."""
        ...

    @property
    def run_id(self) -> str:
        """Id of the run, or of the job that has the evidence."""
        ...

    @property
    def task_id(self) -> str:
        """Name of the task whose runs belong together."""
        ...

    @property
    def actor(self) -> str:
        """Name of the actor; empty where it is not known."""
        ...

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """Scenarios by id."""
        ...

    def groups(self) -> Iterator[tuple[str, str]]:
        """Yield the ids of each group and its scenario."""
        ...

    def flags(self, id_: str) -> int:
        """Return the flags of a group."""
        ...

    def load(self, id_: str) -> Group:
        """Return a group with its rollouts; raises TfgrpoError where it cannot be read."""
        ...

    def prompt(self, scenario: Scenario, rollout: Rollout) -> Prompt | None:
        """Return the prompt that a rollout got; None where its stamp shows another one."""
        ...

    def bare_prompt(self, scenario: Scenario) -> Prompt:
        """Return the prompt of a scenario without lessons."""
        ...
