"""The judge as a rewarder: its opinions, asked for before, as scores beside ground truth."""

from __future__ import annotations

import math

from pytest_tfgrpo.harness.rewarders.protocol import RewardBatch


class JudgeRewarder:
    """Gives each rollout the judge's score; without a verdict it gives none."""

    name = "judge"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, batch: RewardBatch) -> list[float]:
        """Return N scores in [0, 1], NaN where there is no verdict."""
        return [
            math.nan if r.opinion is None or r.opinion.score is None else r.opinion.score
            for r in batch.rollouts
        ]
