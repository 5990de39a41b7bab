"""The tables of the live store, their versions, and how its file is opened.

Everything that changes a store is a transaction, so that a process killed at any write leaves the store as it
was before the transaction or after it.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import make_private
from pytest_tfgrpo.live.records import LiveStatus
from pytest_tfgrpo.live.states import TRANSITIONS, is_final

APPLICATION = 0x74666C72
"""``tflr``: what SQLite's header says of whose file this is."""
BUSY_S = 5.0
"""How long a process waits for another's transaction."""
CHECKED_BYTES = 16 << 20
"""Stores up to this size are checked whole when they are opened; that takes less than 0.1 s."""

_STATUSES = ", ".join(f"'{status}'" for status in LiveStatus)
_FINAL = ", ".join(f"'{status}'" for status in TRANSITIONS if is_final(status))

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

MIGRATIONS: Sequence[Sequence[str]] = (_TABLES,)
"""The statements that take a store from version n to n + 1; a new store starts at version 0."""


@contextmanager
def advised(path: Path | None) -> Iterator[None]:
    """Raise StoreError with what to do for every error of SQLite."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise StoreError(f"live store {_name(path)}: {error}; {_advice(error)}") from error


def _name(path: Path | None) -> str:
    return "in memory" if path is None else repr(str(path))


def _advice(error: Exception) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process has held it for {BUSY_S:g} s: end that one, or try again"
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return "free space on its disk, or name another file as `store`"
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return "it is left as it is: restore a copy, or move it away and start a new one"
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return "make its folder, give this user the right to write there, or name another file as `store`"
    return "nothing of the transaction is kept"


def open_database(
    path: Path | None, namespace: str, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> sqlite3.Connection:
    """Return a connection to the store at `path`, made or brought up to date where needed.

    None keeps it in memory; a file is for its owner alone. Raises StoreError for what is locked, damaged,
    newer, of another namespace, or no live store.
    """
    with advised(path):
        if path is not None:
            with suppress(OSError):  # SQLite says what is wrong with the path
                make_private(path)
        db = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(db, path, namespace, migrations)
        except BaseException:
            db.close()
            raise
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


def _prepare(
    db: sqlite3.Connection, path: Path | None, namespace: str, migrations: Sequence[Sequence[str]]
) -> None:
    db.execute("BEGIN")  # one view of the file, which another process may be making just now
    if _check(db, path, len(migrations)):
        _check_pages(db, path)
    db.execute("COMMIT")
    if path is not None:
        _share(db, path)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("BEGIN IMMEDIATE")
    version = _check(db, path, len(migrations))
    for number, statements in enumerate(migrations[version:], version + 1):
        for statement in statements:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {number}")
    if version == 0:
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute("INSERT INTO meta VALUES ('namespace', ?)", (namespace,))
    db.execute("COMMIT")
    found = db.execute("SELECT value FROM meta WHERE key = 'namespace'").fetchone()[0]
    if found != namespace:
        raise StoreError(
            f"live store {_name(path)} is of the namespace {found!r}, not {namespace!r}; set `namespace` to "
            "that, or name another file as `store`"
        )


def _share(db: sqlite3.Connection, path: Path) -> None:
    from pytest_tfgrpo.bus.embedded.file import write_ahead

    if not write_ahead(db, BUSY_S):
        raise StoreError(
            f"live store {_name(path)}: its file system cannot share memory between processes, which "
            "SQLite's write-ahead log needs; name a file on a local disk as `store`"
        )


def _check(db: sqlite3.Connection, path: Path | None, newest: int) -> int:
    """Return the version of a store, 0 for a new one; raises StoreError for all else."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise StoreError(
            f"{_name(path)} is a database of another program, and is left as it is; name another file as"
            " `store`"
        )
    if version > newest:
        raise StoreError(
            f"live store {_name(path)} has version {version}, and this release reads up to {newest}; use the "
            "newer release that wrote it"
        )
    return version


def _check_pages(db: sqlite3.Connection, path: Path | None) -> None:
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size > CHECKED_BYTES:
        return
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(
            f"live store {_name(path)} is damaged: {' '.join(found.split())}; it is left as it is: restore "
            "a copy, or move it away and start a new one"
        )
