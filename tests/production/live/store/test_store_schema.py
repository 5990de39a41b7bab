"""Opening a live store: what is damaged, locked, foreign or newer is refused with advice, and left alone."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.live_events import RULES, Reporter, runs

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.production.live.states import RUNS
from pytest_tfgrpo.production.live.store.store import open_live_store
from pytest_tfgrpo.production.live.store.store_schema import STORE, open_store_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


def filled(path: Path) -> None:
    store = open_live_store(path, "shop")
    store.write(runs(*"abcd"), rules=RULES, now=1.0)
    store.close()


def refused(path: Path, match: str) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreError, match=match):
        open_live_store(path, "shop")
    assert path.read_bytes() == before


@pytest.mark.usefixtures("durable")
def test_the_file_is_written_ahead_and_synchronously(path):
    db = open_store_file(path, "shop")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert db.execute("PRAGMA user_version").fetchone() == (len(STORE.migrations),)
    db.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_file_and_those_beside_it_are_for_their_owner_alone(path, umask):
    before = os.umask(umask)
    try:
        store = open_live_store(path, "shop")
    finally:
        os.umask(before)
    store.write(runs("a"), rules=RULES, now=1.0)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("live.db", "live.db-wal", "live.db-shm"), 0o600)
    store.close()


def test_a_store_that_everybody_can_read_is_so_no_longer_and_a_group_keeps_its_rights(path):
    filled(path)
    path.chmod(0o664)
    open_live_store(path, "shop").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_a_store_of_another_namespace_is_refused(path):
    filled(path)
    with pytest.raises(StoreError, match="is of the namespace 'shop', not 'hotel'; set `namespace` to that"):
        open_live_store(path, "hotel")


def test_a_database_of_another_program_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE customers (name TEXT)")
    db.close()
    refused(path, "is a database of another program")


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda data: b"not a database, for sure" * 99, "file is not a database; it is left as it is"),
        (lambda data: data[: len(data) // 2], "malformed|damaged"),
        (lambda data: data[:8192] + b"\xff" * 8192 + data[16384:], "malformed|damaged"),
        (lambda data: data[:100] + b"\x00" * 3996 + data[4096:], "malformed|damaged"),
    ],
    ids=["text", "half", "pages", "first page"],
)
def test_a_damaged_store_is_refused_with_advice_and_left_as_it_is(path, damage, match):
    filled(path)
    path.write_bytes(damage(path.read_bytes()))
    refused(path, match)
    refused(path, "restore a copy, or move it away")


def test_a_store_from_a_newer_release_is_refused(path):
    filled(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    refused(
        path, f"has version 99, and this release reads up to {len(STORE.migrations)}; use the newer release"
    )


def test_a_store_of_an_earlier_version_is_brought_up_to_date_with_what_it_holds(path, monkeypatch):
    filled(path)
    more = ("ALTER TABLE updates ADD COLUMN note TEXT", "UPDATE rollouts SET reply = 'new'")
    with monkeypatch.context() as later:
        later.setattr(STORE, "migrations", (*STORE.migrations, more))
        db = open_store_file(path, "shop")
    assert db.execute("SELECT count(note) FROM updates").fetchone() == (0,)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT run, reply FROM rollouts").fetchall() == [(name, "new") for name in "abcd"]
    db.close()
    refused(path, "has version 2")


def test_a_migration_that_fails_changes_nothing(path, monkeypatch):
    filled(path)
    with monkeypatch.context() as later:
        later.setattr(STORE, "migrations", (*STORE.migrations, ("DELETE FROM spans", "DROP TABLE absent")))
        with pytest.raises(StoreError, match="no such table"):
            open_store_file(path, "shop")
    with closing(open_live_store(path, "shop")) as store:
        assert len(store.spans("live-rl-rollout-shop-0000000001")) == 5


def test_a_locked_store_is_refused_after_a_while_and_a_write_to_it_fails_whole(path, monkeypatch):
    monkeypatch.setattr(STORE, "busy_s", 0.05)
    store = open_live_store(path, "shop")
    other = open_store_file(path, "shop")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"is locked; another process has held it for 0\.05 s: end that one"):
        open_live_store(path, "shop")
    with pytest.raises(StoreError, match="is locked"):
        store.write(runs("a"), rules=RULES, now=1.0)
    assert list(store.rollouts()) == [], "readers are not held up"
    other.execute("ROLLBACK")
    store.write(runs("a"), rules=RULES, now=1.0)
    assert store.counts()["succeeded"] == 1
    other.close()
    store.close()


def test_a_full_disk_fails_the_write_whole_and_later_ones_succeed(path):
    store = open_live_store(path, "shop")
    store.write(runs("a"), rules=RULES, now=1.0)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    large = Reporter("b")
    events = [large.start(prompt="word " * 4000), *[large.tool(f"error {n} " * 9) for n in range(300)]]
    with pytest.raises(StoreError, match="disk is full; free space on its disk"):
        store.write(events, rules=RULES, now=1.0)
    assert [rollout.run for rollout in store.rollouts()] == ["a"]
    store._db.execute("PRAGMA max_page_count = 100000")
    store.write(events, rules=RULES, now=1.0)
    assert [rollout.run for rollout in store.rollouts()] == ["a", "b"]
    store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named_with_advice(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(StoreError, match="make it writable for this user"):
        open_live_store(folder / "live.db", "shop")


def test_a_folder_that_is_missing_is_named_with_advice(tmp_path):
    with pytest.raises(StoreError, match=r"missing/live\.db'.*No such file or directory; create its folder"):
        open_live_store(tmp_path / "missing" / "live.db", "shop")


def test_what_has_ended_is_final_and_what_is_used_stays_used_whoever_asks(path):
    filled(path)
    db = open_store_file(path, "shop")
    assert RUNS.final == set(LiveStatus) - {LiveStatus.RUNNING}
    assert {RUNS.after(LiveStatus.RUNNING, end) for end in RUNS.final} == RUNS.final
    with pytest.raises(sqlite3.IntegrityError, match="the run has ended"):
        db.execute("UPDATE rollouts SET status = 'failed'")
    with pytest.raises(sqlite3.IntegrityError, match="the run has ended"):
        db.execute("UPDATE attempts SET status = 'running'")
    db.execute("UPDATE rollouts SET used_in = 1")
    with pytest.raises(sqlite3.IntegrityError, match="the rollout is used"):
        db.execute("UPDATE rollouts SET used_in = 2")
    db.close()


def test_whoever_opens_a_new_store_at_once_agrees(tmp_path):
    def begin(path: Path) -> None:
        open_store_file(path, "shop").close()

    with ThreadPoolExecutor(8) as pool:
        for n in range(12):
            list(pool.map(begin, [tmp_path / f"{n}.db"] * 8))


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("SQLITE_BUSY_SNAPSHOT", "another process has held it"),
        ("SQLITE_LOCKED", "another process has held it"),
        ("SQLITE_FULL", "free space on its disk"),
        ("SQLITE_IOERR_WRITE", "free space on its disk"),
        ("SQLITE_CORRUPT_INDEX", "restore a copy"),
        ("SQLITE_NOTADB", "restore a copy"),
        ("SQLITE_READONLY_DIRECTORY", "make it writable for this user"),
        ("SQLITE_CANTOPEN_ISDIR", "make it writable for this user"),
        ("SQLITE_MISMATCH", "nothing of the transaction is kept"),
    ],
)
def test_an_error_of_sqlite_comes_with_what_to_do(code: str, advice: str) -> None:
    error = sqlite3.OperationalError("it broke")
    error.sqlite_errorname = code
    with pytest.raises(StoreError, match=f"live store in memory: it broke; .*{advice}"), STORE.advised(None):
        raise error
