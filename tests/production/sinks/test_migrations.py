"""The tables of the warehouse, without a server: each version once, and none of a newer one."""

from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks.warehouse.migrations import migrate


class Server:
    def __init__(self, done: int) -> None:
        self.done, self.ran = done, list[str]()

    def run(self, statement: str) -> None:
        self.ran.append(statement)

    def values(self, _: str) -> list[str]:
        return [str(self.done)]


STEPS = (("a", "b"), ("c",), ("d",))


@pytest.mark.parametrize(
    ("done", "ran"),
    [(0, ["a", "b", "1", "c", "2", "d", "3"]), (1, ["c", "2", "d", "3"]), (2, ["d", "3"]), (3, [])],
)
def test_the_versions_that_are_missing_are_taken_in_order(done: int, ran: list[str]) -> None:
    server: Any = Server(done)
    migrate(server, STEPS)
    table, *more = server.ran
    assert table.startswith("CREATE TABLE IF NOT EXISTS migrations")
    noted = [one.removeprefix("INSERT INTO migrations (version) VALUES (").rstrip(")") for one in more]
    assert noted == ran


def test_tables_of_a_newer_version_are_left_as_they_are() -> None:
    server: Any = Server(4)
    with pytest.raises(StoreError, match=r"have version 4, newer than 3, which .*; install the newer one"):
        migrate(server, STEPS)
    assert len(server.ran) == 1
