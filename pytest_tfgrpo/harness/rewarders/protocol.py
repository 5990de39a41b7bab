"""The seam of rewarders: pure functions over the rollouts of whole groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.core.records import Rollout, Scenario

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardBatch:
    """N rollouts of K whole groups; arrays run over rollouts (``_N``)."""

    rollouts: tuple[Rollout, ...]
    scenarios: Mapping[str, Scenario]
    group_N: npt.NDArray[np.intp]
    """Index of each rollout's group, 0..K-1, ascending."""
    scored_N: npt.NDArray[np.bool_]
    """False for rollouts that are errors; their score must be NaN and is ignored."""
    gt_N: Floats
    """gt_score of each rollout; NaN for errors."""


class Rewarder(Protocol):
    """Scores rollouts; pure: equal batches give equal scores, and no group influences another."""

    name: str
    weight: float
    """Weight beside gt_score (which has 1) in the reward that ranks a group; 0 only reports."""

    def __call__(self, batch: RewardBatch) -> Any:
        """Return N scores in [0, 1] (NaN: no score), as an array or sequence of floats."""
        ...
