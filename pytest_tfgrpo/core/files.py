"""Names of the files that the project reads and writes."""

from __future__ import annotations

SCENARIO_SUFFIXES = (".scenario.yaml", ".scenario.json", ".scenarios.jsonl", ".scenarios.csv")
"""A file whose name ends so holds scenarios."""

JOURNAL = "journal.jsonl"
MANIFEST = "manifest.json"
METRICS = "metrics.jsonl"
PER_EPOCH = "per-epoch.json"
REPORT_JSON = "report.json"
REPORT_HTML = "report.html"
EXPERIENCES = "experiences.jsonl"
EXPOSURES = "exposures.jsonl"
LIBRARY = "library.json"
RUNS = "runs"
WORK = "work"
"""Folder of a run's workspaces."""
