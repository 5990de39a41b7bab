"""Telemetry: spans of agents as their runs, and records of a run as spans."""
