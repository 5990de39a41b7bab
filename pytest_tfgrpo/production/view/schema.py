"""The file of the view: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.storage.database import DatabaseKind

_CLAIM = """id TEXT PRIMARY KEY, event_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    time TEXT NOT NULL, trajectory_id TEXT NOT NULL, session TEXT, orphan INTEGER NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0, slim TEXT NOT NULL, redacted TEXT"""
_CHECKED = "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, redacted TEXT"
_TRAJECTORY = """seq INTEGER NOT NULL, at REAL NOT NULL, time TEXT NOT NULL, session TEXT NOT NULL,
    user_ref TEXT, domain TEXT NOT NULL, task_key TEXT, policy_version TEXT, ended TEXT NOT NULL,
    turns INTEGER NOT NULL, trace_id TEXT, slim TEXT NOT NULL, redacted TEXT, revision INTEGER NOT NULL,
    silent INTEGER NOT NULL, blocked INTEGER NOT NULL, agent TEXT NOT NULL, profile TEXT,
    model TEXT, wording TEXT, started TEXT NOT NULL"""
TABLES = {
    "meta": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
    "streams": "name TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL",
    "trajectories": f"id TEXT PRIMARY KEY, {_TRAJECTORY}",
    "superseded": f"id TEXT NOT NULL, {_TRAJECTORY}, PRIMARY KEY (id, seq)",
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
"""Columns by table. `superseded` has earlier revisions of trajectories, for what was known before.
`silent` is 1 where no text was recorded, and `wording` a digest of the task; `at` is when an event
arrived, or one before it in its stream, whichever is later."""
_INDEXES = (
    "CREATE UNIQUE INDEX trajectories_seq ON trajectories (seq)",
    "CREATE INDEX superseded_seq ON superseded (seq)",
    """CREATE TRIGGER trajectories_revised BEFORE UPDATE ON trajectories BEGIN
    INSERT OR IGNORE INTO superseded SELECT * FROM trajectories WHERE id = OLD.id; END""",
    "CREATE INDEX trajectories_session ON trajectories (session)",
    "CREATE INDEX trajectories_user ON trajectories (user_ref) WHERE user_ref IS NOT NULL",
    "CREATE INDEX trajectories_trace ON trajectories (trace_id) WHERE trace_id IS NOT NULL",
    "CREATE UNIQUE INDEX feedback_seq ON feedback (seq)",
    "CREATE INDEX feedback_of ON feedback (trajectory_id)",
    "CREATE INDEX feedback_event ON feedback (event_id)",
    "CREATE INDEX feedback_orphan ON feedback (trajectory_id) WHERE orphan",
    "CREATE UNIQUE INDEX rewards_seq ON rewards (own, seq)",
    "CREATE INDEX rewards_ordinal ON rewards (ordinal) WHERE own",
    "CREATE INDEX rewards_of ON rewards (trajectory_id, own, revision, seq, total)",
    "CREATE INDEX rewards_event ON rewards (event_id)",
    "CREATE INDEX rewards_orphan ON rewards (trajectory_id) WHERE orphan",
)
VIEW = DatabaseKind(
    what="the loop's view",
    application=0x74666C76,  # tflv
    migrations=(
        *[()] * 5,  # one more whenever the tables change
        (*(f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()), *_INDEXES),
    ),
    error=BusError,
    pragmas=("synchronous = NORMAL", "secure_delete = ON"),
    refill="it holds nothing that the bus does not: free space on its disk, or delete the file, and it is "
    "filled again",
)
_TRIES, _AGAIN_S = 4, 0.05


def open_view_file(path: Path) -> sqlite3.Connection:
    """Return a connection to the view at `path`, made where it is missing, for its owner alone.

    Raises BusError, also for a database of another program, which is left as it is.
    """
    left = _TRIES
    while True:
        try:
            return VIEW.open(path)
        except BusError as error:
            left -= 1
            name = getattr(error.__cause__, "sqlite_errorname", "")
            if not left or not name.startswith("SQLITE_IOERR"):
                raise
            time.sleep(_AGAIN_S)  # somebody may delete it just now
