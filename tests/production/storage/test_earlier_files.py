"""Files that earlier releases wrote: they open with what they hold, and have the tables of a new one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import ROOT
from support.buses import STREAM, texts

from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.live.store.store import open_live_store
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import lease_state

WRITTEN_AT = 1795806042.0
"""Half a minute after the dumps were made: what was delivered then is due again."""
TABLES = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"


@pytest.fixture(params=["bus", "live", "view"])
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def earlier(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "earlier.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((ROOT / "tests/golden/databases" / f"{name}.sql").read_text("utf-8"))
    return path


def opened(name: str, path: Path) -> closing:  # type: ignore[type-arg]
    match name:
        case "bus":
            return closing(open_embedded(path, clock=lambda: WRITTEN_AT))
        case "live":
            return closing(open_live_store(path, "shop"))
        case _:
            return closing(LoopView(path))


def tables(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        return [(name, " ".join(sql.replace("( ", "(").split())) for name, sql in db.execute(TABLES)]


def test_an_earlier_file_has_the_tables_of_a_new_one_once_it_is_open(name, earlier, tmp_path):
    for path in (earlier, tmp_path / "new.db"):
        opened(name, path).thing.close()  # type: ignore[attr-defined]
    assert tables(earlier) == tables(tmp_path / "new.db")


@pytest.mark.parametrize("name", ["bus"], indirect=True)
def test_an_earlier_bus_has_its_events_rows_and_places(name, earlier):
    with opened(name, earlier) as bus:
        assert texts(list(bus.replay(STREAM))) == ["event 0", "event 1"]
        assert lease_state(bus.table(STATE), "x") == {"a": 1}
        assert texts(bus.consumer(STREAM, "one").fetch(9, 0)) == ["event 0", "event 1"]


@pytest.mark.parametrize("name", ["live"], indirect=True)
def test_an_earlier_store_has_its_runs_and_its_gate(name, earlier):
    with opened(name, earlier) as store:
        assert [(run.run, run.reply, len(run.choices)) for run in store.rollouts()] == [("a", "Paid", 1)]
        assert [gate.state for _, gate in store.gate_journal()] == ["pass", "hold"]
        assert store.gate().reason == "failures"


@pytest.mark.parametrize("name", ["view"], indirect=True)
def test_an_earlier_view_is_not_emptied(name, earlier):
    with opened(name, earlier) as view:
        assert view.meta("k") == "kept"
        assert view.position(STREAM) == 2
