"""Failures of a run, sorted by what they have in common."""
