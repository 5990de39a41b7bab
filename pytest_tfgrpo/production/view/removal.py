"""Taking rows out of the view: what a session or user owns, and what the streams have let go of."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

_OF_SESSION = "SELECT id, trace_id FROM trajectories WHERE session = :identity"
_OF_USER = """SELECT id, trace_id FROM trajectories WHERE user_ref = :identity
    UNION SELECT id, trace_id FROM trajectories t WHERE user_ref IS NULL
    AND session IN (SELECT session FROM trajectories WHERE user_ref = :identity)
    AND NOT EXISTS (SELECT 1 FROM trajectories o
        WHERE o.session = t.session AND o.user_ref IS NOT NULL AND o.user_ref != :identity)"""
_BY_TRAJECTORY = (
    ("trajectories", "id"),
    ("superseded", "id"),
    ("feedback", "trajectory_id"),
    ("rewards", "trajectory_id"),
    ("further", "id"),
)


def owned(db: sqlite3.Connection, whose: str, identity: str) -> list[tuple[str, str | None]]:
    """Return ids and traces of the trajectories of a session, or of a user by pseudonym.

    What a user's sessions have without any user belongs to the user too.
    """
    query = _OF_SESSION if whose == "session" else _OF_USER
    return db.execute(query, {"identity": identity}).fetchall()


def remove_owned(
    db: sqlite3.Connection,
    whose: str,
    identity: str,
    ids: Collection[str],
    gone: Mapping[str, tuple[str, Sequence[int]]],
) -> int:
    """Delete what is owned, further trajectories, and events by stream: its table and sequences.

    Returns how many rows that were.
    """
    keys = [(key,) for key in {key for key, _ in owned(db, whose, identity)}.union(ids)]
    found = 0
    for table, column in _BY_TRAJECTORY:
        found += db.executemany(f"DELETE FROM {table} WHERE {column} = ?", keys).rowcount
    if whose == "session":
        for table in ("trajectories", "superseded", "feedback", "rewards"):
            found += db.execute(f"DELETE FROM {table} WHERE session = ?", (identity,)).rowcount
    for stream, (table, sequences) in gone.items():
        rows = [(sequence,) for sequence in sequences]
        found += db.executemany(f"DELETE FROM {table} WHERE seq = ?", rows).rowcount
        query = f"DELETE FROM refused WHERE stream = '{stream}' AND seq = ?"
        found += db.executemany(query, rows).rowcount
    return found


def remove_traces(db: sqlite3.Connection, traces: Collection[str]) -> int:
    """Delete trajectories whose traces opted out later, and what is said of them; returns how many."""
    found = 0
    for trace in traces:
        rows = db.execute("SELECT id FROM trajectories WHERE trace_id = ?", (trace,)).fetchall()
        found += len(rows)
        for table in ("superseded", "feedback", "rewards", "further"):
            column = dict(_BY_TRAJECTORY)[table]
            db.executemany(f"DELETE FROM {table} WHERE {column} = ?", rows)
        db.executemany("DELETE FROM trajectories WHERE id = ?", rows)
    return found


def remove_before(db: sqlite3.Connection, stream: str, table: str, first: int) -> None:
    """Delete what a stream has let go of."""
    db.execute(f"DELETE FROM {table} WHERE seq < ?", (first,))
    db.execute("DELETE FROM refused WHERE stream = ? AND seq < ?", (stream, first))
    if table == "trajectories":
        db.execute("DELETE FROM superseded WHERE seq < ?", (first,))
        db.execute("DELETE FROM further WHERE id NOT IN (SELECT id FROM trajectories)")
