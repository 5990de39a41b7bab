"""Scores of rollouts: checks, rewarders and the judge."""
