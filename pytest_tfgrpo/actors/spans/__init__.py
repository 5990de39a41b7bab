"""Spans that agents send during a rollout, as frames."""
