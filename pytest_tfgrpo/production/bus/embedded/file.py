"""The file of the embedded bus: its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.database import DatabaseKind

PAGE_BYTES = 32768
"""Of the file: one page holds one block of events."""

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
BUS = DatabaseKind(
    what="embedded bus",
    application=0x74666275,  # tfbu
    migrations=(_TABLES,),
    error=BusError,
    pragmas=(
        f"page_size = {PAGE_BYTES}",
        "synchronous = FULL",
        "secure_delete = ON",
        "wal_autocheckpoint = 512",  # pages, after which the write-ahead log goes into the file
    ),
)


def blocks(stream: str) -> str:
    """Return the name of the table of a stream, quoted."""
    return f'"blocks_{stream}"'


def open_file(path: Path, streams: Sequence[StreamSpec]) -> sqlite3.Connection:
    """Return a connection to the bus at `path`, made where it is missing; raises BusError."""

    def complete(db: sqlite3.Connection) -> None:
        for stream in streams:
            db.execute(
                f"""CREATE TABLE IF NOT EXISTS {blocks(stream.name)} (
                first INTEGER PRIMARY KEY, count INTEGER NOT NULL, at REAL NOT NULL, ids BLOB NOT NULL,
                head TEXT, body BLOB)"""
            )

    return BUS.open(path, complete)
