"""What a run needs before its first rollout, and every usage error."""
