"""Rewarders: from the rollouts of whole groups to scores, ranks and advantages; pure functions."""
