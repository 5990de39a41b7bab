"""Databases of SQLite: how a file is opened and brought up to date, and errors that say what to do.

Everything that changes a file is a transaction, so that a process killed at any write leaves it as it was
before the transaction or after it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError, StoreError
from pytest_tfgrpo.core.files import make_private
from pytest_tfgrpo.core.python.dataclass import dataclass

_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")


@dataclass(kw_only=True, slots=True)
class DatabaseKind:
    """Files with the same tables: how they are opened, and what their errors say."""

    what: str
    """In front of the path in every message."""
    application: int
    """What SQLite's header says of whose file this is: four letters."""
    migrations: Sequence[Sequence[str]]
    """The statements that take a file from version n to n + 1; a new file starts at version 0."""
    error: type[BusError | StoreError]
    pragmas: Sequence[str]
    """Set in each connection that `open` returns."""
    busy_s: float = 30.0
    """How long a process waits for another's transaction."""
    checked_bytes: int = 0
    """Files up to this size are checked whole when they are opened; 16 MB take less than 0.1 s."""
    setting: str = ""
    """Where a user names another file, in messages: `` as `store` ``."""
    refill: str = ""
    """Of a cache, which is emptied where it has another version: what to do unless another process has it."""

    @contextmanager
    def advised(self, path: Path | None) -> Iterator[None]:
        """Raise this kind's error, with what to do, for every error of SQLite."""
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self.error(f"{self.named(path)}: {error}; {self._advice(error)}") from error

    def named(self, path: Path | None) -> str:
        """Return how messages name a file; None is a database in memory."""
        return f"{self.what} " + ("in memory" if path is None else repr(str(path)))

    def _advice(self, error: Exception) -> str:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith(_LOCKED):
            return f"another process has held it for {self.busy_s:g} s: end that one, or try again"
        if self.refill:
            return self.refill
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return f"free space on its disk and try again, or name another file{self.setting}"
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return "it is left as it is: restore a copy, or move it away and start a new one"
        if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return self._unwritable()
        return "nothing of the transaction is kept"

    def _unwritable(self) -> str:
        return f"create its folder, make it writable for this user, or name another file{self.setting}"

    def connect(self, path: Path | None) -> sqlite3.Connection:
        """Return a connection, for any thread, to a file that `open` has prepared."""
        where = ":memory:" if path is None else path
        return sqlite3.connect(where, timeout=self.busy_s, isolation_level=None, check_same_thread=False)

    def open(
        self, path: Path | None, complete: Callable[[sqlite3.Connection], object] | None = None
    ) -> sqlite3.Connection:
        """Return a connection to the file at `path`, made or brought up to date where needed.

        None keeps it in memory; a new file is for its owner alone. `complete` runs in the transaction that
        brings it up to date. Raises this kind's error for what is locked, damaged, newer, or another
        program's; nothing of it is changed then.
        """
        with self.advised(path):
            if path is not None:
                self._make(path)
            db = self.connect(path)
            try:
                self._prepare(db, path)
                with transaction(db):
                    self._migrate(db, path)
                    if complete is not None:
                        complete(db)
            except BaseException:
                db.close()
                raise
        return db

    def _make(self, path: Path) -> None:
        try:
            make_private(path)
        except OSError as error:
            raise self.error(f"{self.named(path)}: {error.strerror}; {self._unwritable()}") from error

    def _prepare(self, db: sqlite3.Connection, path: Path | None) -> None:
        db.execute("BEGIN")  # one view of the file, which another process may be making just now
        if self._version(db, path):
            self._check_pages(db, path)
        db.execute("COMMIT")
        for pragma in self.pragmas:
            db.execute(f"PRAGMA {pragma}")
        if path is not None and not write_ahead(db, self.busy_s):
            raise self.error(
                f"{self.named(path)}: its file system cannot share memory between processes, which SQLite's "
                f"write-ahead log needs; name a file on a local disk{self.setting}"
            )

    def _version(self, db: sqlite3.Connection, path: Path | None) -> int:
        """Return the version of a file, 0 for a new one; raises this kind's error for all else."""
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != self.application and (application or version or tables):
            raise self.error(
                f"{str(path)!r} is a database of another program, and is left as it is; "
                f"name another file{self.setting}"
            )
        newest = len(self.migrations)
        if version > newest and not self.refill:
            raise self.error(
                f"{self.named(path)} has version {version}, and this release reads up to {newest}; use the "
                "newer release that wrote it"
            )
        return version

    def _check_pages(self, db: sqlite3.Connection, path: Path | None) -> None:
        pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        found = "ok"
        if pages * size <= self.checked_bytes:
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self.error(
                f"{self.named(path)} is damaged: {' '.join(found.split())}; it is left as it is: restore a "
                "copy, or move it away and start a new one"
            )

    def _migrate(self, db: sqlite3.Connection, path: Path | None) -> None:
        version, newest = self._version(db, path), len(self.migrations)
        if version == newest:
            return
        if self.refill:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                db.execute(f'DROP TABLE "{table}"')
        for statements in self.migrations[0 if self.refill else version :]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {self.application}")
        db.execute(f"PRAGMA user_version = {newest}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Write, alone among all processes: all of it, or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # the next BEGIN says what is wrong
            if db.in_transaction:  # SQLite ends it where the disk is full
                db.execute("ROLLBACK")
        raise


def write_ahead(db: sqlite3.Connection, busy_s: float) -> bool:
    """Switch to write-ahead logging; False where the file system cannot share memory between processes.

    SQLite does not wait for a lock there, so this does; raises sqlite3.OperationalError after `busy_s`.
    """
    until = time.monotonic() + busy_s
    while True:
        try:
            return bool(db.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(_LOCKED) or time.monotonic() > until:
                raise
            time.sleep(0.01)
