"""Checks: the table of kinds, and the results of a scenario's checks on one attempt."""
