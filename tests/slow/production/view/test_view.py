"""The view: what the streams say, and nothing else."""

import sqlite3
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage import database
from pytest_tfgrpo.storage.database import write_ahead


@pytest.fixture
def view(tmp_path: Path):
    opened = LoopView(tmp_path / "view.db")
    yield opened
    opened.close()


@pytest.mark.parametrize(("failures", "opens"), [(3, True), (4, False)])
def test_a_file_that_is_deleted_while_it_is_opened_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, opens: bool
):
    left = [*range(failures)]

    def interrupted(db: sqlite3.Connection, busy_s: float) -> bool:
        if left:
            left.pop()
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_SHORT_READ"
            raise error
        return write_ahead(db, busy_s)

    monkeypatch.setattr(database, "write_ahead", interrupted)
    if opens:
        LoopView(tmp_path / "view.db").close()
    else:
        with pytest.raises(BusError, match="disk I/O error"):
            LoopView(tmp_path / "view.db")
