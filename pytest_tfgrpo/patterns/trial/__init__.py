"""Trials: the agent with a pattern beside the same agent without it, on the same scenarios and seeds."""
