"""SQLite connections of all tests: one that nobody closes fails its test, on every version of Python."""

from __future__ import annotations

import gc
import sqlite3
import warnings

import pytest


def let_go() -> None:
    sqlite3.connect(":memory:")
    gc.collect()  # a connection and its statements hold each other


def test_a_connection_that_nobody_closes_is_warned_of() -> None:
    with pytest.warns(ResourceWarning, match="unclosed database"):
        let_go()


def test_a_connection_that_is_closed_or_was_never_open_is_not_warned_of() -> None:
    with warnings.catch_warnings(record=True, category=ResourceWarning) as caught:
        db = sqlite3.connect(":memory:")
        db.close()
        with pytest.raises(sqlite3.OperationalError):
            sqlite3.connect("/missing/file.db")
        del db
        gc.collect()
    assert caught == []
