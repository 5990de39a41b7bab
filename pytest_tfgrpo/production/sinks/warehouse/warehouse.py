"""Events in tables of ClickHouse, which collapses what comes twice and drops what is old."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks.facts import facts_of
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import SinkRow
from pytest_tfgrpo.production.sinks.warehouse.clickhouse import ClickHouse
from pytest_tfgrpo.production.sinks.warehouse.migrations import COMMON, FACTS, migrate

_AT_ONCE = 2000
"""Pseudonyms of one statement, which a server limits to 256 KiB."""


class Warehouse:
    """See `Sink`."""

    name, every_s, keeps = "warehouse", 5.0, True

    def __init__(self, connect: Callable[[], ClickHouse]) -> None:
        """`connect` opens a server, and raises StoreError; nothing is opened before it is needed."""
        self._connect = connect
        self._server: ClickHouse | None = None

    def write(self, rows: Sequence[SinkRow], *, again: bool) -> int:  # noqa: ARG002 - tables collapse them
        """Insert rows; what comes again replaces itself."""
        tables: defaultdict[str, list[str]] = defaultdict(list)
        for row in rows:
            tables[row.table].append(_line(row))
        return sum(self._used(partial(_insert, table, lines)) for table, lines in tables.items())

    def remove(self, removal: Removal) -> None:
        """Delete rows; raises StoreError while the server has not done so."""
        self._used(lambda server: _remove(server, removal))

    def expire(self, before: str) -> None:
        """Do nothing: each table has a TTL."""

    def close(self) -> None:
        """Let go of the connection."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _used(self, work: Callable[[ClickHouse], int]) -> int:
        """Do some work with a server whose tables are there, and open it once more after a failure."""
        try:
            if self._server is None:
                self._server = self._connect()
                migrate(self._server)
            return work(self._server)
        except BaseException:
            self.close()
            raise


def _insert(table: str, lines: Sequence[str], server: ClickHouse) -> int:
    """Insert rows and return how many of them the server refuses: half by half, down to each one."""
    refusal = server.insert(table, [*COMMON, *FACTS[table]], lines)
    if not refusal:
        return 0
    if len(lines) == 1:
        return 1
    half = len(lines) // 2
    return _insert(table, lines[:half], server) + _insert(table, lines[half:], server)


def _line(row: SinkRow) -> str:
    facts = facts_of(row.subject, row.data)
    return json.dumps(
        {
            "event_id": row.id,
            "time": row.time[:-1].replace("T", " "),
            "subject": row.subject,
            "trajectory_ref": row.trajectory,
            "session_refs": row.sessions,
            "user_refs": row.users,
            "data": row.text,
            **{name: facts[name] for name in FACTS[row.table]},
        }
    )


def _remove(server: ClickHouse, removal: Removal) -> int:
    conditions = list(_conditions(server, removal))
    for table in reversed(
        list(FACTS)
    ):  # trajectories last: others are found by them, also at another attempt
        for condition in conditions:
            if server.values(f"SELECT count() FROM {table} WHERE {condition}") == ["0"]:
                continue
            pending = f"database = currentDatabase() AND table = '{table}' AND NOT is_done"
            if server.values(f"SELECT count() FROM system.mutations WHERE {pending}") != ["0"]:
                raise StoreError(f"the warehouse is still deleting rows of {table}")
            server.run(f"ALTER TABLE {table} DELETE WHERE {condition} SETTINGS mutations_sync = 1")
    return 0


def _conditions(server: ClickHouse, removal: Removal) -> Iterator[str]:
    """Yield what rows that go have in common: people first found by name, then by their runs and sessions."""
    named = [
        *(f"hasAny(session_refs, [{some}])" for some in _quoted(removal.sessions)),
        *(f"hasAny(user_refs, [{some}])" for some in _quoted(removal.users)),
    ]
    runs, lonely = set(removal.trajectories), []
    if removal.users:
        mine = [f"hasAny(user_refs, [{some}])" for some in _quoted(removal.users)]
        sessions = {one for some in mine for one in _found(server, "arrayJoin(session_refs)", some)}
        users = ", ".join(_quoted(removal.users, len(removal.users)))
        alone = f"NOT arrayExists(u -> u NOT IN ({users}), user_refs)"
        shared: set[str] = set()
        for some in _quoted(sessions):
            shared.update(
                _found(server, "arrayJoin(session_refs)", f"hasAny(session_refs, [{some}]) AND NOT ({alone})")
            )
        lonely = [f"hasAny(session_refs, [{some}]) AND {alone}" for some in _quoted(sessions - shared)]
    for condition in [*named, *lonely]:
        runs.update(_found(server, "trajectory_ref", condition))
    runs.discard("")
    yield from lonely  # before what names the user, by which they are found
    yield from (f"event_id IN ({some})" for some in _quoted(removal.events))
    yield from (f"trajectory_ref IN ({some})" for some in _quoted(runs))
    yield from named


def _found(server: ClickHouse, what: str, condition: str) -> set[str]:
    return {
        one
        for table in FACTS
        for one in server.values(f"SELECT DISTINCT {what} FROM {table} WHERE {condition}")
    }


def _quoted(refs: Collection[str], most: int = _AT_ONCE) -> list[str]:
    """Return pseudonyms, which are letters, digits and dashes, for a statement, in parts."""
    known = [f"'{ref}'" for ref in sorted(refs)]
    return [", ".join(known[n : n + most]) for n in range(0, len(known), most)]
