"""The sweep of the dev split after an epoch, as the decision sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pytest_tfgrpo.core.records import Group, Phase, RunStatus
from pytest_tfgrpo.learning.prompts import Ask

Sweep: TypeAlias = Callable[[Phase, Ask], Awaitable[Mapping[str, Group]]]
"""Carries out a phase and returns its groups by scenario id; raises Unfinished when it could not."""


class Unfinished(Exception):
    """A sweep did not finish: interrupted, aborted, or out of budget."""

    def __init__(self, end: RunStatus, reason: str) -> None:
        """`end` is how the run ends, for a reason."""
        super().__init__(end, reason)
        self.end: RunStatus = end
        self.reason = reason
