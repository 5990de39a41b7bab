"""Events, the rows beside them, and where both are stored; a bus is one such place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Protocol

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.core.python.dataclass import dataclass

STATE = "state"
"""The table of the rows that are published beside events."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BusEvent:
    """One event; the first four fields are the publisher's, the others the bus's."""

    id: str
    """A UUID in its usual lower-case form; what dedupes."""
    subject: str
    """Decides the stream."""
    time: str
    """When it happened, by the publisher's clock, RFC 3339."""
    data: bytes
    """At most `MAX_EVENT_BYTES`; the bus does not look into it."""
    sequence: int = 0
    """Within its stream, from 1; 0 if not stored."""
    attempts: int = 0
    """How often it was delivered to this consumer, this time included; 0 outside of one."""
    arrived: float = 0.0
    """When the bus stored it, seconds of the Unix epoch."""
    receipt: str = field(default="", repr=False, compare=False)
    """What a server needs for an acknowledgement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePut:
    """A value to write if the revision matches."""

    key: str
    value: bytes
    revision: int
    """The one that was read; 0 for a key that has no value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableEntry:
    """A value, its key and its revision; a key that was removed has the value None."""

    key: str
    value: bytes | None
    revision: int
    """Grows with every write to any key."""


class TableWatch(Protocol):
    """Changes of a table in their order, one for each key that changed since the last look."""

    def changes(self, timeout_s: float) -> list[TableEntry]:
        """Return what changed, at first every row there is; [] after `timeout_s`."""
        ...

    def close(self) -> None:
        """Watch no longer."""
        ...


class Table(Protocol):
    """State that machines share, by key; keys are words joined by dots."""

    def get(self, key: str) -> tuple[bytes | None, int]:
        """Return value and revision; (None, 0) for a key that has no value."""
        ...

    def put(self, key: str, value: bytes, revision: int) -> int:
        """Write if `revision` is the key's, and return the new one; raises RevisionConflict."""
        ...

    def remove(self, key: str, revision: int) -> None:
        """Remove if `revision` is the key's, and the value on disk too; raises RevisionConflict."""
        ...

    def list(self, prefix: str = "") -> dict[str, tuple[bytes, int]]:
        """Return values and revisions by key, of the keys that start with `prefix`."""
        ...

    def watch(self, prefix: str = "") -> TableWatch:
        """Return the changes of the keys that start with `prefix`."""
        ...


class EventStore(Protocol):
    """Stores events and rows together. Every method raises BusError where that fails."""

    atomic: bool
    """Whether events and rows of one `publish` are one transaction."""

    def publish(self, events: Sequence[BusEvent], puts: Sequence[TablePut] = ()) -> list[int]:
        """Store events and return their sequences; durable when it returns.

        An id that its stream stored within `DEDUPE_S` is not stored again: it has the sequence of the first.
        `puts` go to the table ``state``. Raises RevisionConflict before anything is stored where a
        revision does not match. Where the bus is not `atomic`, a failure between may leave the events
        without the rows: publish both again, under the same ids.
        """
        ...

    def table(self, name: str) -> Table:
        """Return a table, which is made where it is missing."""
        ...


def change(table: Table, key: str, to: Callable[[bytes | None], bytes | None]) -> bytes | None:
    """Set a row to what `to` makes of its value, even if others change it meanwhile; None is no row.

    Returns the value before; raises BusError.
    """
    while True:
        value, revision = table.get(key)
        wanted = to(value)
        if wanted == value:
            return value
        with suppress(RevisionConflict):
            if wanted is None:
                table.remove(key, revision)
            else:
                table.put(key, wanted, revision)
            return value
