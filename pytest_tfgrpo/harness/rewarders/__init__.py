"""Rewarders: from the rollouts of whole groups to scores, ranks and advantages; pure functions."""

from pytest_tfgrpo.harness.rewarders.scoring import batch_of, group_of, score

__all__ = ["batch_of", "group_of", "score"]
