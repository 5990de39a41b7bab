"""The file of the view: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.bus.embedded.file import BUSY_S, write_ahead
from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.files import make_private

APPLICATION = 0x74666C76
"""``tflv``: what SQLite's header says of whose file this is."""
VERSION = 4
"""Of the tables; a file with another one is filled anew."""

_CLAIM = """id TEXT PRIMARY KEY, event_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    time TEXT NOT NULL, trajectory_id TEXT NOT NULL, session TEXT, orphan INTEGER NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0, slim TEXT NOT NULL, redacted TEXT"""
_CHECKED = "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, redacted TEXT"
TABLES = {
    "meta": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
    "streams": "name TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL",
    "trajectories": """id TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL, time TEXT NOT NULL,
        session TEXT NOT NULL, user_ref TEXT, domain TEXT NOT NULL, task_key TEXT, policy_version TEXT,
        ended TEXT NOT NULL, turns INTEGER NOT NULL, trace_id TEXT, slim TEXT NOT NULL, redacted TEXT,
        revision INTEGER NOT NULL, silent INTEGER NOT NULL""",
    "feedback": f"{_CLAIM}, type TEXT NOT NULL",
    "rewards": f"""{_CLAIM}, own INTEGER NOT NULL, revision INTEGER NOT NULL, ordinal INTEGER NOT NULL,
        total REAL NOT NULL, normalized REAL""",
    "training": _CHECKED,
    "deployments": _CHECKED,
    "dead": """seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, code TEXT NOT NULL,
        stream TEXT NOT NULL, subject TEXT NOT NULL, redacted TEXT""",
    "audit": """seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, action TEXT NOT NULL,
        what TEXT NOT NULL, ref TEXT""",
    "refused": """stream TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, code TEXT NOT NULL,
        pointer TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (stream, seq)""",
    "further": "id TEXT PRIMARY KEY, said TEXT NOT NULL",
}
"""Columns by table. `silent` is 1 where no text was recorded; `at` is when an event arrived, or one before it
in its stream, whichever is later."""
_INDEXES = (
    "CREATE UNIQUE INDEX trajectories_seq ON trajectories (seq)",
    "CREATE INDEX trajectories_session ON trajectories (session)",
    "CREATE INDEX trajectories_user ON trajectories (user_ref) WHERE user_ref IS NOT NULL",
    "CREATE INDEX trajectories_trace ON trajectories (trace_id) WHERE trace_id IS NOT NULL",
    "CREATE UNIQUE INDEX feedback_seq ON feedback (seq)",
    "CREATE INDEX feedback_of ON feedback (trajectory_id)",
    "CREATE INDEX feedback_event ON feedback (event_id)",
    "CREATE INDEX feedback_orphan ON feedback (trajectory_id) WHERE orphan",
    "CREATE UNIQUE INDEX rewards_seq ON rewards (own, seq)",
    "CREATE INDEX rewards_ordinal ON rewards (ordinal) WHERE own",
    "CREATE INDEX rewards_of ON rewards (trajectory_id, own)",
    "CREATE INDEX rewards_event ON rewards (event_id)",
    "CREATE INDEX rewards_orphan ON rewards (trajectory_id) WHERE orphan",
)
_TRIES, _AGAIN_S = 4, 0.05


@contextmanager
def advised(path: Path) -> Iterator[None]:
    """Raise BusError with what to do for every error of SQLite."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise BusError(
            f"the loop's view {str(path)!r}: {error}; it holds nothing that the bus does not: free space on "
            "its disk, or delete the file, and it is filled again"
        ) from error


def open_view_file(path: Path) -> sqlite3.Connection:
    """Return a connection to the view at `path`, made where it is missing, for its owner alone.

    Raises BusError, also for a database of another program, which is left as it is.
    """
    left = _TRIES
    while True:
        try:
            return _opened(path)
        except BusError as error:
            left -= 1
            name = getattr(error.__cause__, "sqlite_errorname", "")
            if not left or not name.startswith("SQLITE_IOERR"):
                raise
            time.sleep(_AGAIN_S)  # somebody may delete it just now


def _opened(path: Path) -> sqlite3.Connection:
    with advised(path):
        try:
            make_private(path)
        except OSError as error:
            raise BusError(
                f"the loop's view {str(path)!r}: {error.strerror}; name a file in a folder of yours"
            ) from error
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    _version(db, path)
    if not write_ahead(db):
        raise BusError(f"the loop's view {str(path)!r} needs a local disk; name a file on one")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("BEGIN IMMEDIATE")
    if _version(db, path) != VERSION:
        for table in TABLES:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for table, columns in TABLES.items():
            db.execute(f"CREATE TABLE {table} ({columns})")
        for index in _INDEXES:
            db.execute(index)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def _version(db: sqlite3.Connection, path: Path) -> int:
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise BusError(
            f"{str(path)!r} is a database of another program, and is left as it is; name another file"
        )
    return version
