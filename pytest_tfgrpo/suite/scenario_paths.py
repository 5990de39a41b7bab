"""Where scenario files are in a folder: nothing of other programs is looked through, and nothing of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.core.files import RUNS, SCENARIO_SUFFIXES, WORKSPACES_PREFIX
from pytest_tfgrpo.sandbox.paths import holds_journal

SKIPPED = frozenset({"__pycache__", "build", "dist", "node_modules", "venv"})
"""Folders that hold no suite, as for pytest; so are folders of runs."""
OTHERS = (".", WORKSPACES_PREFIX)
"""Starts of the names of others."""


def scenario_paths(folder: Path) -> Iterator[Path]:
    """Yield the scenario files below a folder, by name."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED and not path.name.startswith(OTHERS) and not holds_runs(path):
                yield from scenario_paths(path)
        elif path.name.endswith(SCENARIO_SUFFIXES):
            yield path


def holds_runs(folder: Path) -> bool:
    """Return whether a folder is that of a run, or of runs of tasks."""
    return holds_journal(folder) or any((task / RUNS).is_dir() for task in folder.iterdir() if task.is_dir())
