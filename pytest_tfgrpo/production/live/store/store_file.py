"""The file of a live store: one connection for all threads of a process, another after a fork."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from weakref import WeakMethod

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.store.store_schema import STORE, open_store_file
from pytest_tfgrpo.storage.database import transaction

_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process: a child neither uses them nor closes them, as letting go of one would."""


class StoreFile:
    """Transactions on a store; they raise StoreError where SQLite fails."""

    def __init__(self, db: sqlite3.Connection, path: Path | None, namespace: str) -> None:
        self.path, self.namespace = path, namespace
        self._db, self._lock = db, RLock()
        self._foreign = False
        os.register_at_fork(after_in_child=while_alive(self._after_fork))

    def _after_fork(self) -> None:
        """Leave the connection alone in a child process: SQLite's may not cross a fork."""
        _INHERITED.append(self._db)
        self._lock, self._foreign = RLock(), True

    def close(self) -> None:
        """Close the file; in a child process, what that has opened."""
        with self._lock:
            if not self._foreign:
                self._db.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, STORE.advised(self.path):
            if self._foreign:
                self._db, self._foreign = open_store_file(self.path, self.namespace), False
            yield self._db

    def _one(self, statement: str, *values: object) -> Json:
        """Return the first value of the first row, None if there is none."""
        with self._reading() as db:
            row = db.execute(statement, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as db, transaction(db):
            yield db


def while_alive(method: Callable[[], None]) -> Callable[[], None]:
    """Return what calls a method of an object that it does not keep alive."""
    weak = WeakMethod(method)

    def call() -> None:
        if (alive := weak()) is not None:
            alive()

    return call
