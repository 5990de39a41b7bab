"""Never wait for the disk: no test cuts the power, so a sync has only to be called."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_tfgrpo.storage.database import DatabaseKind

PREPARE = DatabaseKind._prepare
"""Sets a connection up as the product does."""


def _prepare(kind: DatabaseKind, db: sqlite3.Connection, path: Path | None) -> None:
    PREPARE(kind, db, path)
    db.execute("PRAGMA synchronous = OFF")


@contextmanager
def unsynced() -> Iterator[None]:
    """Let neither files nor databases of this process wait until they are on disk.

    Who is called instead of ``os.fsync`` refuses what is no open file too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        patch.setattr(DatabaseKind, "_prepare", _prepare)
        yield
