"""States that outlast a process: each transition is stored together with the event that it owes."""

from __future__ import annotations

import json
from typing import Generic, NamedTuple

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, EventStore, TablePut, change
from pytest_tfgrpo.storage.states import S, StateTable, T


class KeptState(NamedTuple, Generic[S]):
    """Where a thing stood when somebody looked."""

    key: str
    state: S
    owner: str
    """Who brought it there; empty at the start."""
    revision: int
    """Of its row: a transition from here fails once there was another."""


class KeptStates(Generic[S, T]):
    """Where things of one kind stand, for several processes: rows of the table ``state``."""

    def __init__(
        self, store: EventStore, table: StateTable[S, T], *, kind: str, start: S, owner: str
    ) -> None:
        """A thing without a row is at `start`; `owner` names this process alone."""
        self._store, self._rows, self._table = store, store.table(STATE), table
        self._kind, self._start, self._owner = kind, start, owner

    def at(self, key: str) -> KeptState[S]:
        """Return where a thing stands; raises BusError."""
        value, revision = self._rows.get(f"{self._kind}.{key}")
        if value is None:
            return KeptState(key, self._start, "", revision)
        return self._read(key, value, revision)

    def listed(self) -> dict[str, KeptState[S]]:
        """Return where the things stand that have a row, by key; raises BusError."""
        found = {}
        for row, (value, revision) in self._rows.list(f"{self._kind}.").items():
            key = row.removeprefix(f"{self._kind}.")
            found[key] = self._read(key, value, revision)
        return found

    def _read(self, key: str, value: bytes, revision: int) -> KeptState[S]:
        """Return what a row says; raises BusError where it is damaged."""
        try:
            state, owner = json.loads(value)
        except (ValueError, TypeError):
            state = owner = None
        if not isinstance(owner, str) or not isinstance(state, str) or state not in self._table.states:
            raise BusError(
                f"the row {f'{self._kind}.{key}'!r} of the table {STATE} holds no state and owner, but "
                f"{value[:200]!r}; put the bus back from a copy of its data"
            )
        return KeptState(key, state, owner, revision)

    def forget(self, key: str) -> None:
        """Put a thing back at the start, whatever leads there; raises BusError."""
        change(self._rows, f"{self._kind}.{key}", lambda _: None)

    def take(self, at: KeptState[S], trigger: T, *, time: str, data: bytes) -> KeptState[S] | None:
        """Store where `trigger` leads together with the event that owes, whose time and data are given.

        None: it leads nowhere, or the thing stands elsewhere by now, so that of two who look at once one goes
        on. Raises BusError. Where the store is not atomic, the event may be stored without the state: take
        the transition again, and the event is not stored twice.
        """
        found = self._table.rows.get((at.state, trigger))
        if found is None:
            return None
        state, subject = found
        row = f"{self._kind}.{at.key}"
        event = BusEvent(id=derived_id(row, str(at.revision), trigger), subject=subject, time=time, data=data)
        put = TablePut(key=row, value=json.dumps([state, self._owner]).encode(), revision=at.revision)
        try:
            self._store.publish([event] if subject else [], [put])
        except RevisionConflict:
            return None
        now = self.at(at.key)
        mine = (now.state, now.owner) == (state, self._owner)
        return now if mine else KeptState(at.key, state, self._owner, at.revision)
