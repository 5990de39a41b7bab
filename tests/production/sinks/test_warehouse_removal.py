"""What the warehouse deletes, with a server that finds what it is told; the slow tests have a real one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.warehouse.migrations import MIGRATIONS
from pytest_tfgrpo.production.sinks.warehouse.warehouse import Warehouse

TABLES = ["deployments", "training", "rewards", "trajectories"]
"""In the order in which rows go: others are found by trajectories."""


class Server:
    """Finds what it is told to by part of a query, and keeps what it ran."""

    def __init__(self, found: Mapping[str, list[str]]) -> None:
        self.found, self.ran, self.closed = found, list[str](), 0

    def run(self, statement: str) -> None:
        self.ran.append(statement)

    def values(self, query: str) -> list[str]:
        if "max(version)" in query:
            return [str(len(MIGRATIONS))]
        otherwise = ["0"] if "system.mutations" in query else ["1"] if "count()" in query else []
        return next((values for part, values in self.found.items() if part in query), otherwise)

    def close(self) -> None:
        self.closed += 1

    @property
    def deleted(self) -> list[tuple[str, str]]:
        """Return table and condition of each deletion."""
        parts = [one.removeprefix("ALTER TABLE ").partition(" DELETE WHERE ") for one in self.ran]
        suffix = " SETTINGS mutations_sync = 1"
        return [(table, what.removesuffix(suffix)) for table, _, what in parts if what.endswith(suffix)]


def removed(removal: Removal, found: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    server: Any = Server(found)
    Warehouse(lambda: server).remove(removal)
    return list(server.deleted)


def test_runs_and_events_go_from_every_table_the_trajectories_last() -> None:
    gone = removed(Removal(trajectories=frozenset(["t-1", "t-2"]), events=frozenset(["e-1"])), {})
    conditions = ["event_id IN ('e-1')", "trajectory_ref IN ('t-1', 't-2')"]
    assert gone == [(table, one) for table in TABLES for one in conditions]


def test_a_table_without_such_rows_is_left_alone() -> None:
    gone = removed(Removal(events=frozenset(["e-1"])), {"count() FROM training": ["0"]})
    assert [table for table, _ in gone] == ["deployments", "rewards", "trajectories"]


def test_a_session_takes_its_runs_along_and_goes_after_them() -> None:
    found = {"DISTINCT trajectory_ref FROM rewards": ["t-9", ""]}
    gone = removed(Removal(sessions=frozenset(["s-1"]), trajectories=frozenset(["t-1"])), found)
    assert [what for table, what in gone if table == "rewards"] == [
        "trajectory_ref IN ('t-1', 't-9')",
        "hasAny(session_refs, ['s-1'])",
    ]


def test_a_user_s_sessions_go_where_nobody_else_is() -> None:
    alone = "NOT arrayExists(u -> u NOT IN ('u-1'), user_refs)"
    found = {
        f"rewards WHERE hasAny(session_refs, ['s-1', 's-2']) AND NOT ({alone})": ["s-2"],
        "DISTINCT arrayJoin(session_refs) FROM deployments WHERE hasAny(user_refs": ["s-2", "s-1"],
    }
    gone = removed(Removal(users=frozenset(["u-1"])), found)
    assert [what for table, what in gone if table == "trajectories"] == [
        f"hasAny(session_refs, ['s-1']) AND {alone}",
        "hasAny(user_refs, ['u-1'])",
    ]


def test_while_the_server_still_deletes_that_is_an_error_and_the_next_use_connects_anew() -> None:
    server: Any = Server({"table = 'rewards' AND NOT is_done": ["1"]})
    store = Warehouse(lambda: server)
    with pytest.raises(StoreError, match="still deleting rows of rewards"):
        store.remove(Removal(events=frozenset(["e-1"])))
    assert ([table for table, _ in server.deleted], server.closed) == (TABLES[:2], 1)
    store.close()
    assert server.closed == 1
    server.found = {}
    store.remove(Removal(events=frozenset(["e-1"])))
    store.close()
    assert ([table for table, _ in server.deleted][2:], server.closed) == (TABLES, 2)
