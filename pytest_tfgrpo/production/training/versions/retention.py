"""Which versions go: those that nobody uses and that are old, or too many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

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
