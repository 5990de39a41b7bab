"""The warehouse, its client against a fake server; the statements run for real in the slow tests."""

import json
import logging
import socket
from collections.abc import Iterator
from functools import partial

import pytest
from support.loop_events import judged, trajectory
from support.loop_sinks import (
    FakeClickHouse,
    deployed,
    fake_clickhouse,
    row,
    training_request,
    training_status,
)

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.production.sinks.rows import SinkRow
from pytest_tfgrpo.production.sinks.warehouse import clickhouse, warehouse
from pytest_tfgrpo.production.sinks.warehouse.migrations import COMMON, FACTS
from pytest_tfgrpo.production.sinks.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[FakeClickHouse, str]]:
    with fake_clickhouse() as found:
        yield found


@pytest.fixture
def fake(address: tuple[FakeClickHouse, str]) -> FakeClickHouse:
    address[0].__init__()  # type: ignore[misc]
    return address[0]


@pytest.fixture
def store(address: tuple[FakeClickHouse, str], fake: FakeClickHouse) -> Iterator[Warehouse]:
    store = Warehouse(partial(clickhouse.open_clickhouse, f"http://loop:s3%20cret@{address[1]}/agents"))
    yield store
    store.close()


def run(name: str) -> SinkRow:
    return row("RL_TRAJECTORIES", trajectory(name))


def test_each_row_has_the_columns_of_its_table(store: Warehouse, fake: FakeClickHouse) -> None:
    rows = [
        *(run("a"), row("RL_REWARDS", judged("a", "a", style=0.5)), row("RL_TRAINING", training_request())),
        *(row("RL_TRAINING", training_status()), row("RL_DEPLOYMENTS", deployed())),
    ]
    assert store.write(rows, again=False) == 0
    assert {table: len(lines) for table, lines in fake.tables.items()} == {
        "trajectories": 1, "rewards": 1, "training": 2, "deployments": 1,
    }  # fmt: skip
    for table, lines in fake.tables.items():
        assert list(lines[0]) == [*COMMON, *FACTS[table]]
    first = fake.tables["trajectories"][0]
    assert first["time"] == "2025-12-08 12:00:00.000"
    assert json.loads(first["data"]) == json.loads(trajectory("a").data)
    assert fake.users == {"Basic bG9vcDpzMyBjcmV0"}  # loop:s3 cret


def test_a_row_that_the_server_refuses_is_counted_and_the_others_are_there(
    store: Warehouse, fake: FakeClickHouse
) -> None:
    fake.poison = run("c").id
    assert store.write([run(name) for name in "abcdefg"], again=False) == 1
    assert sorted(line["event_id"] for line in fake.tables["trajectories"]) == sorted(
        run(name).id for name in "abdefg"
    )


@pytest.mark.parametrize(
    "fault", [(516, "Code: 516. Authentication failed"), (243, "Code: 243. Disk is full")]
)
def test_what_is_no_fault_of_a_row_is_an_error_without_the_password(
    store: Warehouse, fake: FakeClickHouse, fault: tuple[int, str]
) -> None:
    fake.fault = fault
    with pytest.raises(StoreError, match=rf"warehouse 127\.0\.0\.1:\d+: .*{fault[1]}") as caught:
        store.write([run("a")], again=False)
    assert "s3" not in str(caught.value)
    fake.fault = None
    assert store.write([run("a")], again=True) == 0
    assert sum(query.startswith("SELECT version()") for query in fake.statements) == 2  # opened once more


def test_a_server_that_is_away_is_an_error_which_nothing_else_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a service
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(StoreError, match="refused"):
        clickhouse.open_clickhouse(url)
    assert capsys.readouterr().err == ""


def test_a_missing_client_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "clickhouse_connect", None)
    with pytest.raises(SettingError, match=r"pip install 'pytest-tfgrpo\[clickhouse\]'"):
        clickhouse.open_clickhouse("http://localhost")


def test_statements_stay_below_the_servers_limit() -> None:
    refs = [f"u-{number:032x}" for number in range(5000)]
    parts = warehouse._quoted(refs)
    assert [part.count("'") // 2 for part in parts] == [2000, 2000, 1000]
    assert max(map(len, parts)) < 256 * 1024
