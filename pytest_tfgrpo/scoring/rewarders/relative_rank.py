"""The relative-rank rewarder: where a rollout's reward stands in its group."""

from __future__ import annotations

from pytest_tfgrpo.numerics.arrays import Floats
from pytest_tfgrpo.numerics.rl.advantages import group_advantage, relative_rank
from pytest_tfgrpo.protocols import RewardBatch


def rank(batch: RewardBatch, reward_N: Floats) -> tuple[Floats, Floats]:
    """Return relative rank and advantage of each rollout's reward in its group (decisions 10, 11)."""
    return relative_rank(reward_N, batch.group_N), group_advantage(reward_N, batch.group_N)
