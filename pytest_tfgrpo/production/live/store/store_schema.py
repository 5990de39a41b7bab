"""The tables of the live store, and how its file is opened."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.production.live.states import RUNS
from pytest_tfgrpo.storage.database import DatabaseKind

_STATUSES = ", ".join(f"'{status}'" for status in LiveStatus)
_FINAL = ", ".join(f"'{status}'" for status in LiveStatus if status in RUNS.final)

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"""CREATE TABLE rollouts (
        sequence INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        owner TEXT NOT NULL,
        category TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ({_STATUSES})),
        reason TEXT NOT NULL DEFAULT '',
        control INTEGER NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 1,
        started_at REAL NOT NULL,
        touched_at REAL NOT NULL,
        ended_at REAL,
        score REAL CHECK (score BETWEEN 0 AND 1),
        pending INTEGER CHECK (pending IN (1, 2)),
        used_in INTEGER,
        prompt TEXT,
        reply TEXT,
        trace TEXT,
        reward TEXT)""",
    "CREATE UNIQUE INDEX rollout_owners ON rollouts (owner, run)",
    "CREATE INDEX rollout_runs ON rollouts (run, sequence)",
    "CREATE INDEX rollouts_running ON rollouts (touched_at) WHERE status = 'running'",
    "CREATE INDEX rollouts_pending ON rollouts (score IS NULL, ended_at) WHERE pending IS NOT NULL",
    f"""CREATE TABLE attempts (
        rollout INTEGER NOT NULL,
        number INTEGER NOT NULL,
        status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ({_STATUSES})),
        reason TEXT NOT NULL DEFAULT '',
        started_at REAL NOT NULL,
        ended_at REAL,
        PRIMARY KEY (rollout, number)) WITHOUT ROWID""",
    """CREATE TABLE spans (
        rollout INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        name TEXT NOT NULL,
        at REAL NOT NULL,
        flag INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (rollout, seq)) WITHOUT ROWID""",
    """CREATE TABLE updates (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, executed INTEGER NOT NULL, report TEXT NOT NULL)""",
    """CREATE TABLE selectors (
        number INTEGER PRIMARY KEY, made_by INTEGER NOT NULL, at REAL NOT NULL, document TEXT NOT NULL)""",
    """CREATE TABLE gate (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, state TEXT NOT NULL CHECK (state IN ('pass', 'hold')),
        document TEXT NOT NULL)""",
    "CREATE TABLE refusals (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID",
    *(
        f"""CREATE TRIGGER {table}_are_final BEFORE UPDATE OF status ON {table}
        WHEN OLD.status IN ({_FINAL}) BEGIN SELECT RAISE(ABORT, 'the run has ended'); END"""
        for table in ("rollouts", "attempts")
    ),
    """CREATE TRIGGER rollouts_are_used_once BEFORE UPDATE OF used_in ON rollouts
        WHEN OLD.used_in IS NOT NULL BEGIN SELECT RAISE(ABORT, 'the rollout is used'); END""",
)

STORE = DatabaseKind(
    what="live store",
    application=0x74666C72,  # tflr
    migrations=(_TABLES,),
    error=StoreError,
    pragmas=("synchronous = FULL",),
    busy_s=5.0,
    checked_bytes=16 << 20,
    setting=" as `store`",
)


def open_store_file(path: Path | None, namespace: str) -> sqlite3.Connection:
    """Return a connection to the store at `path`, made or brought up to date where needed.

    None keeps it in memory; a file is for its owner alone. Raises StoreError for what is locked, damaged,
    newer, of another namespace, or no live store.
    """

    def complete(db: sqlite3.Connection) -> None:
        db.execute("INSERT OR IGNORE INTO meta VALUES ('namespace', ?)", (namespace,))
        found = db.execute("SELECT value FROM meta WHERE key = 'namespace'").fetchone()[0]
        if found != namespace:
            raise StoreError(
                f"{STORE.named(path)} is of the namespace {found!r}, not {namespace!r}; set `namespace` to "
                "that, or name another file as `store`"
            )

    db = STORE.open(path, complete)
    if path is not None:
        _hide(path)
    return db


def _hide(path: Path) -> None:
    """Take the rights of everybody from a store; those of its group stay, which somebody has given it."""
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & stat.S_IRWXO:
                file.chmod(mode & ~stat.S_IRWXO)
