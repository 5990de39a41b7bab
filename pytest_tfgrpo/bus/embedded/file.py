"""The file of the embedded bus: its tables, how it is opened, and what its errors mean."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.bus.streams import StreamSpec
from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.files import make_private

APPLICATION = 0x74666275
"""``tfbu``: what SQLite's header says of whose file this is."""
VERSION = 1
BUSY_S = 30.0
"""How long a process waits for another's transaction."""
PAGE_BYTES = 32768
"""Of the file: one page holds one block of events."""
CHECKPOINT_PAGES = 512
"""After which the write-ahead log goes into the file."""

_TABLES = (
    """CREATE TABLE consumers (
        id INTEGER PRIMARY KEY, stream TEXT NOT NULL, name TEXT NOT NULL, cursor INTEGER NOT NULL,
        UNIQUE (stream, name))""",
    """CREATE TABLE deliveries (
        consumer INTEGER NOT NULL, sequence INTEGER NOT NULL, attempts INTEGER NOT NULL,
        touched_at REAL NOT NULL, due_at REAL NOT NULL,
        PRIMARY KEY (consumer, sequence)) WITHOUT ROWID""",
    """CREATE TABLE rows (
        name TEXT NOT NULL, key TEXT NOT NULL, value BLOB, revision INTEGER NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (name, key)) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX rows_changed ON rows (revision)",
)


def blocks(stream: str) -> str:
    """Return the name of the table of a stream, quoted."""
    return f'"blocks_{stream}"'


def _statements(streams: Sequence[StreamSpec]) -> Iterator[str]:
    for stream in streams:
        yield f"""CREATE TABLE IF NOT EXISTS {blocks(stream.name)} (
            first INTEGER PRIMARY KEY, count INTEGER NOT NULL, at REAL NOT NULL, ids BLOB NOT NULL,
            head TEXT, body BLOB)"""


@contextmanager
def advised(path: Path) -> Iterator[None]:
    """Raise BusError with what to do for every error of SQLite."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise BusError(f"embedded bus {str(path)!r}: {error}; {_advice(error)}") from error


def _advice(error: Exception) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process has held it for {BUSY_S:g} s: end that one, or try again"
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return "free space on its disk, then publish again"
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return "it is left as it is: restore a copy, or move it away and start a new one"
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return "make its folder, and give this user the right to write there"
    return "nothing of the transaction is kept"


def open_file(path: Path, streams: Sequence[StreamSpec]) -> sqlite3.Connection:
    """Return a connection to the bus at `path`, made where it is missing, for its owner alone.

    Raises BusError for what is locked, damaged, newer, or no bus; nothing of it is changed then.
    """
    with advised(path):
        _make(path)
        db = connect(path)
        try:
            _prepare(db, path, streams)
        except BaseException:
            db.close()
            raise
    return db


def connect(path: Path) -> sqlite3.Connection:
    """Return a further connection to a bus that is open."""
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _make(path: Path) -> None:
    try:
        make_private(path)
    except OSError as error:
        raise BusError(
            f"embedded bus {str(path)!r}: {error.strerror}; name a file in a folder of yours"
        ) from error


def _prepare(db: sqlite3.Connection, path: Path, streams: Sequence[StreamSpec]) -> None:
    db.execute("BEGIN")  # one view of the file, which another process may be making just now
    _check(db, path)
    db.execute("COMMIT")
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    if not write_ahead(db):
        raise BusError(
            f"embedded bus {str(path)!r}: its file system cannot share memory between processes, which "
            "SQLite's write-ahead log needs; name a file on a local disk"
        )
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    db.execute("BEGIN IMMEDIATE")
    if _check(db, path) == 0:
        for statement in _TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _statements(streams):
        db.execute(statement)
    db.execute("COMMIT")


def _check(db: sqlite3.Connection, path: Path) -> int:
    """Return the version of a bus, 0 for a new one; raises BusError for all else."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise BusError(
            f"{str(path)!r} is a database of another program, and is left as it is; name another file"
        )
    if version > VERSION:
        raise BusError(
            f"embedded bus {str(path)!r} has version {version}, and this release reads up to {VERSION}; use "
            "the newer release that wrote it"
        )
    return version


def write_ahead(db: sqlite3.Connection, busy_s: float = BUSY_S) -> bool:
    """Switch to write-ahead logging; False where the file system cannot share memory between processes.

    SQLite does not wait for a lock there, so this does; raises sqlite3.OperationalError after `busy_s`.
    """
    until = time.monotonic() + busy_s
    while True:
        try:
            return bool(db.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            locked = error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            if not locked or time.monotonic() > until:
                raise
            time.sleep(0.01)
