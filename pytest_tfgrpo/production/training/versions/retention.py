"""What goes by age: versions that nobody uses, also where they are too many, and the folders of jobs."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from pytest_tfgrpo.production.training.versions.rows import VersionRow

AGE = timedelta(days=90)
IDLE = 5
"""Versions that nobody uses and that stay all the same, the newest."""


def to_remove(rows: Sequence[VersionRow], *, used: frozenset[str], best: str | None, now: str) -> list[str]:
    """Return the names of the versions that go, of rows in the order of their names.

    Those in `used` (live and previous), the `best` and pinned ones stay, however old.
    """
    idle = [
        row
        for row in rows
        if row.name not in used and row.name != best and not row.pinned and row.state != "removed"
    ]
    limit = datetime.fromisoformat(now) - AGE
    old = [row.name for row in idle if datetime.fromisoformat(row.at) < limit]
    kept = [row.name for row in idle if row.name not in old]
    return [*old, *kept[: max(0, len(kept) - IDLE)]]


def remove_old_jobs(folder: Path, *, going_on: Collection[str], now: float) -> None:
    """Remove the folders of jobs that are old by the clock `now`, with the texts of production in them.

    Raises OSError.
    """
    for path in folder.glob("*"):
        old = path.stat().st_mtime < now - AGE.total_seconds()
        if old and _is_job(path.name) and path.name not in going_on:
            shutil.rmtree(path)


def _is_job(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
