"""Tables of the embedded bus."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.production.bus.embedded.consumer import EmbeddedFile
from pytest_tfgrpo.production.bus.embedded.writer import BusTransaction
from pytest_tfgrpo.production.bus.protocol import check_key
from pytest_tfgrpo.storage.event_store import TableEntry, TablePut

_REMOVED_S = 3600.0
"""How long the mark of a removed key stays for those who watch."""


def check_puts(db: sqlite3.Connection, table: str, puts: Sequence[TablePut]) -> None:
    """Raise RevisionConflict for a key that is not at the revision that was read, or is named twice."""
    keys: set[str] = set()
    for put in puts:
        found = _revision(db, table, put.key)
        if found != put.revision or put.key in keys:
            raise RevisionConflict(
                f"the table row {put.key!r} is at revision {found}, not at {put.revision}; read it again"
            )
        keys.add(put.key)


def write_rows(db: sqlite3.Connection, table: str, puts: Sequence[TablePut], now: float) -> list[int]:
    """Write rows whose revisions were checked; returns the new ones."""
    return [_write(db, table, put.key, put.value, now) for put in puts]


def _revision(db: sqlite3.Connection, table: str, key: str) -> int:
    query = "SELECT revision FROM rows WHERE name = ? AND key = ? AND value IS NOT NULL"
    row = db.execute(query, (table, key)).fetchone()
    return int(row[0]) if row else 0


def _write(db: sqlite3.Connection, table: str, key: str, value: bytes | None, now: float) -> int:
    revision = _newest(db) + 1
    db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", (table, key, value, revision, now))
    return revision


def _newest(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(revision), 0) FROM rows").fetchone()[0])


class EmbeddedTable:
    """See `Table`."""

    def __init__(self, file: EmbeddedFile, name: str) -> None:
        self._file, self._name = file, name

    def get(self, key: str) -> tuple[bytes | None, int]:
        """Return value and revision; (None, 0) for a key that has no value."""
        query = "SELECT value, revision FROM rows WHERE name = ? AND key = ? AND value IS NOT NULL"
        row = self._file.read(lambda db: db.execute(query, (self._name, check_key(key))).fetchone())
        return (None, 0) if row is None else (row[0], row[1])

    def put(self, key: str, value: bytes, revision: int) -> int:
        """Write if `revision` is the key's, and return the new one; raises RevisionConflict."""
        put = TablePut(key=check_key(key), value=value, revision=revision)

        def write(transaction: BusTransaction) -> int:
            check_puts(transaction.db, self._name, [put])
            return write_rows(transaction.db, self._name, [put], transaction.now)[0]

        return self._file.write(write)

    def remove(self, key: str, revision: int) -> None:
        """Remove if `revision` is the key's, and the value on disk too; raises RevisionConflict."""
        put = TablePut(key=check_key(key), value=b"", revision=revision)

        def write(transaction: BusTransaction) -> None:
            check_puts(transaction.db, self._name, [put])
            if revision:
                _write(transaction.db, self._name, key, None, transaction.now)
            transaction.db.execute(
                "DELETE FROM rows WHERE value IS NULL AND at < ? AND revision <"
                " (SELECT max(revision) FROM rows)",
                (transaction.now - _REMOVED_S,),
            )

        self._file.write(write)
        self._file.forget()

    def list(self, prefix: str = "") -> dict[str, tuple[bytes, int]]:
        """Return values and revisions by key, of the keys that start with `prefix`."""
        query = (
            "SELECT key, value, revision FROM rows WHERE name = ? AND substr(key, 1, ?) = ?"
            " AND value IS NOT NULL ORDER BY key"
        )
        values = (self._name, len(prefix), prefix)
        rows = self._file.read(lambda db: db.execute(query, values).fetchall())
        return {key: (value, revision) for key, value, revision in rows}

    def watch(self, prefix: str = "") -> EmbeddedWatch:
        """Return the changes of the keys that start with `prefix`."""
        return EmbeddedWatch(self._file, self._name, prefix)


class EmbeddedWatch:
    """See `TableWatch`; for one thread."""

    def __init__(self, file: EmbeddedFile, table: str, prefix: str) -> None:
        self._file, self._table, self._prefix, self._seen = file, table, prefix, -1

    def changes(self, timeout_s: float) -> list[TableEntry]:
        """Return what changed, at first every row there is; [] after `timeout_s`."""
        until = time.monotonic() + timeout_s
        commit = -1
        while not (rows := self._file.read(self._changed)) and (left := until - time.monotonic()) > 0:
            commit = self._file.wait_for_commit(commit, left)
        return rows

    def _changed(self, db: sqlite3.Connection) -> list[TableEntry]:
        newest = _newest(db)  # a row that changes from here on is seen the next time
        rows = db.execute(
            "SELECT key, value, revision FROM rows INDEXED BY rows_changed WHERE revision > ? AND name = ?"
            " AND substr(key, 1, ?) = ? AND revision <= ? ORDER BY revision",
            (self._seen, self._table, len(self._prefix), self._prefix, newest),
        )
        found = [TableEntry(key=key, value=value, revision=revision) for key, value, revision in rows]
        first, self._seen = self._seen < 0, newest
        return [row for row in found if row.value is not None] if first else found

    def close(self) -> None:
        """Watch no longer."""
