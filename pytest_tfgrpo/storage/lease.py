"""One process at a time does a job: a row of a table that its holder renews.

No clock is compared with another's: whoever sees the row unchanged for `ttl_s` of its own time takes it. What
the holder publishes goes along with the row, so that it fails once somebody else has taken it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, EventStore, Table, TablePut

TTL_S = 15.0
"""How long the row stays unchanged before another process takes it."""


class Lease:
    """A job that one process does, and what it keeps of it; not for several threads."""

    def __init__(
        self,
        store: EventStore,
        job: str,
        owner: str,
        *,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` names this process alone, never the one before a restart."""
        self.state: Json = None
        """What the last holder kept; valid while the lease is held."""
        self._store = store
        self._table = store.table(STATE)
        self._key = f"lease.{job}"
        self._owner = owner
        self._ttl_s = ttl_s
        self._clock = clock
        self._revision = 0
        self._seen: tuple[int, float] | None = None
        """Revision of somebody else's row, and when it was first seen."""
        self._renewed: float | None = None

    @property
    def held(self) -> bool:
        """Whether this process held the lease when it last looked."""
        return self._renewed is not None

    def hold(self) -> bool:
        """Take or renew the lease where that is due; False: somebody else has it. Raises BusError."""
        now = self._clock()
        if self._renewed is not None and now - self._renewed < self._ttl_s / 3:
            return True
        if self._renewed is not None:
            return self._write(self.state)
        value, revision = self._table.get(self._key)
        row = _row(value, self._key)
        if row["owner"] not in ("", self._owner):
            if self._seen is None or self._seen[0] != revision:
                self._seen = (revision, now)
            if now - self._seen[1] < self._ttl_s:
                return False
        self._revision = revision
        return self._write(row["state"])

    def publish(self, events: list[BusEvent], state: Json) -> list[int] | None:
        """Publish events and the new state; None where the lease was lost, and nothing is stored.

        Raises BusError. Where the store is not atomic, the events may be stored without the state.
        """
        put = TablePut(key=self._key, value=self._value(self._owner, state), revision=self._revision)
        try:
            sequences = self._store.publish(events, [put])
        except RevisionConflict:
            self._lose()
            return None
        value, revision = self._table.get(self._key)
        if _row(value, self._key)["owner"] != self._owner:  # taken since: what was published stands
            self._lose()
            return sequences
        self._revision = revision
        self.state, self._renewed = state, self._clock()
        return sequences

    def release(self) -> None:
        """Let the next process take it at once."""
        if self._renewed is None:
            return
        with suppress(BusError):  # it runs out by itself
            self._table.put(self._key, self._value("", self.state), self._revision)
        self._lose()

    def _write(self, state: Json) -> bool:
        try:
            self._revision = self._table.put(self._key, self._value(self._owner, state), self._revision)
        except RevisionConflict:
            self._lose()
            return False
        self.state, self._renewed = state, self._clock()
        return True

    def _lose(self) -> None:
        self._renewed = self._seen = None

    def _value(self, owner: str, state: Json) -> bytes:
        return json.dumps({"owner": owner, "state": state}, separators=(",", ":")).encode()


def lease_state(table: Table, job: str) -> Json:
    """Return what the last holder of a job kept, as the table ``state`` has it."""
    key = f"lease.{job}"
    return _row(table.get(key)[0], key)["state"]


def lease_holder(table: Table, job: str) -> str:
    """Return who has a job, or had it and is gone; empty where the last one let go of it."""
    key = f"lease.{job}"
    return str(_row(table.get(key)[0], key)["owner"])


def _row(value: bytes | None, key: str) -> dict[str, Json]:
    """Return what a row says; raises BusError where it is no lease."""
    if value is None:
        return {"owner": "", "state": None}
    try:
        row = json.loads(value)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("owner"), str) or "state" not in row:
        raise BusError(
            f"the row {key!r} of the table state holds no lease, but {value[:200]!r}; "
            "put the bus back from a copy of its data"
        )
    return row
