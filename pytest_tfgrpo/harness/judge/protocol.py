"""The seam of judges: a rollout and a rubric in, an opinion out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pytest_tfgrpo.core.records import Json, Opinion, Rollout, Scenario
from pytest_tfgrpo.harness.calls import Calls


class Judge(Protocol):
    """Decides each criterion of a rubric with yes or no, over several votes."""

    name: str
    """Spec of the model that judges."""
    identity: Mapping[str, Json]
    """What makes two judges the same: model, template, votes."""

    async def opine(self, scenario: Scenario, rollout: Rollout, calls: Calls) -> Opinion:
        """Return a verdict or, with score None, why there is none; never a default score.

        Raises BudgetError when a call was not made.
        """
        ...
