"""The chain of a stream of records: each holds the hash of the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent

PREVIOUS = "previous"
"""The key of a record that holds the hash of the one before it."""
NOTHING = "0" * 64
"""Instead of a hash, where no record is before."""


def record_hash(event: BusEvent) -> str:
    """Return the hash of a record: SHA-256 of its id, its time and its data, a line each."""
    return hashlib.sha256(b"\n".join([event.id.encode(), event.time.encode(), event.data])).hexdigest()


def linked(event: BusEvent, before: BusEvent | None) -> BusEvent:
    """Return a record that holds the hash of the one before it; raises BusError unless it is an object."""
    value = {**_fields(event), PREVIOUS: NOTHING if before is None else record_hash(before)}
    return replace(event, data=json.dumps(value, separators=(",", ":"), sort_keys=True).encode())


def check_records(events: Sequence[BusEvent], streams: Mapping[str, StreamSpec]) -> None:
    """Raise BusError for an event of a chained stream that is no object; `streams` are by subject."""
    for event in events:
        if streams[event.subject].chained:
            _fields(event)


def previous_of(record: BusEvent) -> str | None:
    """Return the hash that a record holds of the one before it; None where it holds none."""
    found = fields_of(record).get(PREVIOUS)
    return found if isinstance(found, str) else None


def _fields(event: BusEvent) -> dict[str, Json]:
    found = fields_of(event)
    if not found:
        raise BusError(
            f"event {event.id!r}: a record of {event.subject} must be a JSON object that says something"
        )
    return found


def fields_of(event: BusEvent) -> dict[str, Json]:
    """Return the fields of a record; none where it is no object."""
    try:
        found = load_json(event.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
