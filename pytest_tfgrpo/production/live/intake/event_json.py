"""Events of live runs as JSON (``tfgrpo.live-event/1``), where they cross the edge of a process.

On an agent's thread an event is a tuple that nobody checks; the store refuses what has no place in it.
"""

from __future__ import annotations

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.production.live.records import LiveEvent

EVENT_SCHEMA = "tfgrpo.live-event/1"


def event_to_wire(event: LiveEvent) -> dict[str, Json]:
    """Return an event as a JSON object."""
    return {"schema": EVENT_SCHEMA, **{name: to_wire(value) for name, value in event._asdict().items()}}


def event_of(value: Json) -> LiveEvent:
    """Return the event that a JSON object is; raises ValueError that names the place of what is wrong."""
    found = violations("live-event", value)
    if found:
        raise ValueError("; ".join(f"#{one.pointer}: {one.message}" for one in found[:3]))
    return LiveEvent(**{name: value[name] for name in LiveEvent._fields})
