"""Names of the files that the project reads and writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import JournalError

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


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file atomically; raises JournalError."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; raises JournalError."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise JournalError(f"cannot write {path}: {error}") from error


def run_folder(out: Path, task_id: str, run_id: str) -> Path:
    """Return the folder of a run."""
    return out / task_id / RUNS / run_id
