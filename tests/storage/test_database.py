"""What holds for a database of any kind; `production/live` and `production/bus/embedded` have the rest."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.storage import database
from pytest_tfgrpo.storage.database import DatabaseKind, transaction, write_ahead

FIRST, SECOND = ("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "INSERT INTO b SELECT x FROM a")


def kind(*migrations: tuple[str, ...], refill: str = "") -> DatabaseKind:
    return DatabaseKind(
        what="the shelf", application=77, migrations=migrations, error=BusError, pragmas=(), refill=refill
    )


def tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shelf.db"


def test_each_version_is_reached_from_the_one_before_and_once(path: Path) -> None:
    with closing(kind(FIRST).open(path)) as db:
        db.execute("INSERT INTO a VALUES (7)")
    for _ in range(2):
        with closing(kind(FIRST, SECOND).open(path)) as db:
            assert db.execute("SELECT x FROM b").fetchall() == [(7,)]
    with pytest.raises(BusError, match=r"the shelf .* has version 2, and this release reads up to 1"):
        kind(FIRST).open(path)


@pytest.mark.parametrize(
    "other", [(FIRST,), (FIRST, SECOND, ("CREATE TABLE c (x)",))], ids=["older", "newer"]
)
def test_a_cache_of_another_version_is_made_anew(other: tuple[tuple[str, ...], ...], path: Path) -> None:
    with closing(kind(*other, refill="fill it again").open(path)) as db:
        db.execute("INSERT INTO a VALUES (7)")
    cache = kind(FIRST, SECOND, refill="fill it again")
    with closing(cache.open(path)) as db:
        assert (tables(db), db.execute("SELECT count(*) FROM a").fetchone()) == ({"a", "b"}, (0,))
        db.execute("INSERT INTO a VALUES (8)")
    with closing(cache.open(path)) as db:
        assert db.execute("SELECT x FROM a").fetchall() == [(8,)]
        with (
            pytest.raises(BusError, match=r"the shelf .*: no such table: d; fill it again"),
            cache.advised(path),
        ):
            db.execute("SELECT * FROM d")


def test_a_cache_that_another_process_holds_is_not_to_be_deleted(path: Path) -> None:
    cache = kind(FIRST, refill="delete the file")
    cache.busy_s = 0.01
    with (
        closing(cache.open(path)) as db,
        closing(cache.connect(path)) as other,
        transaction(db),
        pytest.raises(BusError, match="locked; another process has held it") as locked,
        cache.advised(path),
    ):
        other.execute("BEGIN IMMEDIATE")
    assert "delete" not in str(locked.value)


def test_what_completes_a_file_is_part_of_its_first_transaction(path: Path) -> None:
    def refuse(db: sqlite3.Connection) -> None:
        raise BusError("no")

    with pytest.raises(BusError, match="no"):
        kind(FIRST).open(path, refuse)
    with closing(sqlite3.connect(path)) as db:
        assert tables(db) == set()


def test_a_transaction_that_fails_stores_nothing() -> None:
    with closing(kind(FIRST).open(None)) as db:
        with pytest.raises(sqlite3.ProgrammingError), transaction(db):
            db.executemany("INSERT INTO a VALUES (1 / ?)", [(1,), ()])
        assert not db.in_transaction
        assert db.execute("SELECT * FROM a").fetchall() == []


def test_who_writes_waits_for_the_transaction_of_another(path: Path) -> None:
    shelf, begun = kind(FIRST), Event()
    with closing(shelf.open(path)) as db, closing(shelf.open(path)) as other, ThreadPoolExecutor(1) as pool:

        def write() -> None:
            begun.set()
            with transaction(other):
                other.execute("INSERT INTO a VALUES (2)")

        db.execute("BEGIN IMMEDIATE")
        late = pool.submit(write)
        begun.wait()
        time.sleep(0.02)
        db.execute("INSERT INTO a VALUES (1)")
        db.execute("COMMIT")
        late.result()
        assert db.execute("SELECT x FROM a").fetchall() == [(1,), (2,)]


def test_a_place_where_no_file_can_be_is_named_with_what_to_do(tmp_path: Path) -> None:
    advice = "create its folder, make it writable for this user, or name another file"
    with pytest.raises(BusError, match=f"missing/shelf.db': No such file or directory; {advice}"):
        kind(FIRST).open(tmp_path / "missing" / "shelf.db")


class Locked:
    """A connection whose file answers `errors` before it switches."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)

    def fetchone(self) -> tuple[str]:
        return ("wal",)

    def execute(self, _: str) -> Locked:
        if self.errors:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorname = self.errors.pop(0)
            raise error
        return self


def test_who_switches_to_the_log_waits_for_a_lock_and_for_nothing_else() -> None:
    patient = Locked("SQLITE_BUSY", "SQLITE_LOCKED")
    assert write_ahead(patient, 60.0)  # type: ignore[arg-type]
    assert patient.errors == []
    for busy_s, errors in ((60.0, ["SQLITE_IOERR", "SQLITE_BUSY"]), (-1.0, ["SQLITE_BUSY"] * 2)):
        refused = Locked(*errors)
        with pytest.raises(sqlite3.OperationalError):
            write_ahead(refused, busy_s)  # type: ignore[arg-type]
        assert refused.errors == errors[1:]


@pytest.mark.parametrize("checked", [True, False])
def test_a_damaged_file_is_refused_where_it_is_small_enough_to_be_checked(path: Path, checked: bool) -> None:
    with closing(kind(FIRST).open(path)) as db:
        db.executemany("INSERT INTO a VALUES (?)", [("x" * 4_000,)] * 20)
        db.commit()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - 4_096 * 2)
        file.write(b"\xff" * 4_096)
    damaged = replace(kind(FIRST), checked_bytes=size if checked else size - 1)
    if not checked:
        damaged.open(path).close()
        return
    with pytest.raises(BusError, match=r"the shelf .* is damaged"):
        damaged.open(path)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("SQLITE_BUSY_SNAPSHOT", "another process has held it for 30 s: end that one, or try again"),
        ("SQLITE_LOCKED", "another process has held it for 30 s: end that one, or try again"),
        ("SQLITE_FULL", "free space on its disk and try again, or name another file as `store`"),
        ("SQLITE_IOERR_WRITE", "free space on its disk and try again, or name another file as `store`"),
        ("SQLITE_CORRUPT", "it is left as it is: restore a copy, or move it away and start a new one"),
        ("SQLITE_NOTADB", "it is left as it is: restore a copy, or move it away and start a new one"),
        ("SQLITE_READONLY", "make it writable for this user, or name another file as `store`"),
        ("SQLITE_CANTOPEN", "make it writable for this user, or name another file as `store`"),
        ("SQLITE_PERM", "make it writable for this user, or name another file as `store`"),
        ("SQLITE_ERROR", "nothing of the transaction is kept"),
    ],
)
def test_an_error_says_what_to_do_about_it(code: str, advice: str) -> None:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorname = code
    shelf = replace(kind(FIRST), setting=" as `store`")
    with pytest.raises(BusError, match=r"^the shelf in memory: no; ") as caught, shelf.advised(None):
        raise error
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize(
    "made", ["CREATE TABLE other (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 78"]
)
def test_a_file_of_another_program_is_refused_and_left_as_it_is(made: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(made)
    before = path.read_bytes()
    with pytest.raises(BusError, match=r"is a database of another program, and is left as it is"):
        kind(FIRST).open(path)
    assert path.read_bytes() == before


def test_a_connection_has_the_pragmas_and_the_patience_of_its_kind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = replace(kind(FIRST), pragmas=("cache_size = 123",), busy_s=7.0)
    with closing(shelf.open(path)) as db:
        assert db.execute("PRAGMA cache_size").fetchone() == (123,)
        assert db.execute("PRAGMA busy_timeout").fetchone() == (7_000,)
        assert db.execute("PRAGMA application_id").fetchone() == (77,)
    monkeypatch.setattr(database, "write_ahead", lambda *_: False)
    with pytest.raises(BusError, match=r"cannot share memory between processes, which SQLite's write-ahead"):
        shelf.open(path)
