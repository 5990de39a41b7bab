"""Executors: where the calls of a run's actor are made, and how many at once."""
