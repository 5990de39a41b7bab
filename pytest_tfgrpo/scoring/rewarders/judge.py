"""The judge as a rewarder: its results as scores beside ground truth."""

from __future__ import annotations

import math

from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.protocols import RewardBatch


class JudgeRewarder:
    """Scores each rollout as the judge did; none without a judge's result, or if it is the gt_score."""

    name = "judge"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, batch: RewardBatch) -> list[float]:
        """Return N scores in [0, 1], NaN where there is nothing to add."""
        settled = {id_ for id_, scenario in batch.scenarios.items() if scenario.truth == "judge"}
        return [math.nan if r.scenario_id in settled else _verdict(r) for r in batch.rollouts]


def _verdict(rollout: Rollout) -> float:
    opinion = rollout.opinion
    return math.nan if opinion is None or opinion.score is None else opinion.score
