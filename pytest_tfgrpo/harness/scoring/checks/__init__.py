"""Checks: the table of kinds, and what the checks of a scenario find in one attempt."""
