"""Rollouts on a cluster: what travels there, what an agent needs, and who makes which rollout."""
