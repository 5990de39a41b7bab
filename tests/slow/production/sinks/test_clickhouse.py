"""The statements of the warehouse on ClickHouse itself, which runs in this process (`chdb`)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.loop_events import judged, trajectory
from support.loop_sinks import SCRUBBER, deployed, row, training_request, training_status
from support.tools import require_module

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import SinkRow
from pytest_tfgrpo.production.sinks.warehouse import clickhouse
from pytest_tfgrpo.production.sinks.warehouse.clickhouse import ClickHouse
from pytest_tfgrpo.production.sinks.warehouse.migrations import FACTS, MIGRATIONS, migrate
from pytest_tfgrpo.production.sinks.warehouse.warehouse import Warehouse
from pytest_tfgrpo.storage.event_store import BusEvent

ADA, BOB = "u-" + "a" * 32, "u-" + "b" * 32
STREAMS = {"trajectory": "RL_TRAJECTORIES", "reward": "RL_REWARDS", "training": "RL_TRAINING"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One in this process: it takes one folder."""
    require_module("chdb")
    from clickhouse_connect import get_client

    return get_client(dsn=f"chdb://{tmp_path_factory.mktemp('clickhouse')}")


@pytest.fixture
def server(engine: Any) -> ClickHouse:
    for table in (*FACTS, "migrations"):
        engine.command(f"DROP TABLE IF EXISTS {table} SYNC")
    return ClickHouse(engine, "chdb")


@pytest.fixture
def store(server: ClickHouse) -> Warehouse:
    return Warehouse(lambda: server)


def fresh(event: BusEvent, ago_days: float = 0.0) -> SinkRow:
    stream = STREAMS.get(event.subject.split(".")[2], "RL_DEPLOYMENTS")
    return row(stream, replace(event, time=utc_now(ago_ms=ago_days * 86_400_000)), time.time())


def count(server: ClickHouse, table: str, final: str = "FINAL") -> int:
    return int(server.values(f"SELECT count() FROM {table} {final}")[0])


def test_what_comes_twice_collapses_and_facts_can_be_queried(server: ClickHouse, store: Warehouse) -> None:
    events = [trajectory("a"), judged("a", "a", style=0.5), training_request(), training_status(), deployed()]
    rows = [fresh(event) for event in events]
    assert store.write(rows, again=False) == store.write(rows, again=True) == 0
    assert [count(server, table) for table in FACTS] == [1, 1, 2, 1]
    assert count(server, "trajectories", "") == 2
    server.run("OPTIMIZE TABLE trajectories FINAL")
    assert count(server, "trajectories", "") == 1
    means = (
        "concat(policy_version, ' ', toString(avg(total_reward)), ' ', toString(any(components['style'])))"
    )
    query = f"SELECT {means} FROM trajectories FINAL JOIN rewards FINAL USING trajectory_id"
    assert server.values(f"{query} GROUP BY policy_version") == ["v1 0.5 0.5"]
    when = rows[0].time[:-1].replace("T", " ")
    columns = "toString(time), ' ', JSONExtractString(data, 'agent_id')"
    assert server.values(f"SELECT concat({columns}) FROM trajectories FINAL") == [f"{when} support-bot"]
    assert server.values("SELECT concat(state, ' ', deployed_by) FROM deployments FINAL") == ["canary ada"]


def test_migrations_run_from_any_version_twice_and_refuse_a_newer_one(server: ClickHouse) -> None:
    migrate(server, MIGRATIONS[:1])
    for statement in MIGRATIONS[1]:  # a kill before its version was noted
        server.run(statement)
    for _ in range(2):
        migrate(server)
        assert sorted(server.values("SELECT version FROM migrations")) == ["1", "2", "3", "4"]
    assert [count(server, table) for table in FACTS] == [0, 0, 0, 0]
    more = (*MIGRATIONS, ("ALTER TABLE training ADD COLUMN IF NOT EXISTS more UInt8",))
    migrate(server, more)
    assert "more" in server.values("SELECT name FROM system.columns WHERE table = 'training'")
    with pytest.raises(StoreError, match="have version 5, newer than 4, which this pytest-tfgrpo knows"):
        migrate(server)


def test_rows_of_more_than_90_days_ago_expire(server: ClickHouse, store: Warehouse) -> None:
    store.write([fresh(trajectory("old"), 90.5), fresh(trajectory("young"), 89.5)], again=False)
    server.run("OPTIMIZE TABLE trajectories FINAL")
    assert server.values("SELECT toString(event_id) FROM trajectories") == [trajectory("young").id]


def test_one_row_that_the_engine_refuses_is_counted(
    server: ClickHouse, store: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [fresh(trajectory(name)) for name in "abcde"]
    rows[2] = replace(rows[2], time="no time at all, and longer than one Z")
    assert store.write(rows, again=False) == 1
    assert count(server, "trajectories") == 4


def test_a_user_goes_with_runs_rewards_and_sessions_but_for_what_names_others(
    server: ClickHouse, store: Warehouse
) -> None:
    runs = [
        *(trajectory("a", user=ADA, session="hers"), trajectory("b", session="hers")),
        *(trajectory("c", user=ADA, session="both"), trajectory("d", user=BOB, session="both")),
        *(trajectory("e", session="both"), trajectory("f", user=BOB, session="his")),
    ]
    rewards = [judged(name, name, style=0.5) for name in "abf"]
    store.write([fresh(event) for event in [*runs, *rewards]], again=False)
    store.write([fresh(event) for event in runs], again=True)
    store.remove(Removal(users=frozenset({ADA})))
    left = server.values("SELECT toString(event_id) FROM trajectories FINAL")
    assert sorted(left) == sorted(trajectory(name).id for name in "def")
    assert server.values("SELECT toString(event_id) FROM rewards") == [judged("f", "f", style=0.5).id]
    assert server.values(f"SELECT count() FROM trajectories WHERE position(data, '{ADA}') > 0") == ["0"]
    store.remove(Removal(users=frozenset({ADA})))  # again is fine


def test_sessions_runs_and_single_events_go(server: ClickHouse, store: Warehouse) -> None:
    store.write([fresh(trajectory(name, session=f"s-{name}")) for name in "abcd"], again=False)
    store.write([fresh(judged("a", "a", style=0.5))], again=False)
    store.remove(
        Removal(
            sessions=frozenset({SCRUBBER.session_ref("s-a")}),
            trajectories=frozenset({fresh(trajectory("b")).trajectory, *(f"{n:032x}" for n in range(5000))}),
            events=frozenset({trajectory("c").id}),
        )
    )
    assert server.values("SELECT toString(event_id) FROM trajectories") == [trajectory("d").id]
    assert count(server, "rewards") == 0


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_is_an_error(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clickhouse, "ANSWER_S", 1)
    store = Warehouse(partial(clickhouse.open_clickhouse, silent))
    with pytest.raises(StoreError, match=r"[Tt]imed out|timeout"):
        store.write([fresh(trajectory("a"))], again=False)
