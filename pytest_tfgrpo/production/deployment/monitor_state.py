"""What the monitor says of itself between its looks: what a ramp waits for, and what cannot begin one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.storage.event_store import STATE, EventStore
from pytest_tfgrpo.storage.lease import lease_state

LEASE = "deployment"


@dataclass(frozen=True, kw_only=True, slots=True)
class MonitorState:
    """What the newest look found."""

    waits: str = ""
    """What the next step waits for; empty where nothing ramps, or it is due."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why approved versions cannot begin their ramps, by name."""

    def encode(self) -> Json:
        """Return the state of the lease."""
        return to_wire(self)


NOTHING_SAID = MonitorState()


def monitor_state(store: EventStore) -> MonitorState:
    """Return what the newest look of any service found; raises BusError."""
    return decode_monitor_state(lease_state(store.table(STATE), LEASE))


def decode_monitor_state(value: Json) -> MonitorState:
    """Return what the state of the lease says; nothing where it is not of this release."""
    try:
        return from_wire(MonitorState, value)
    except ValueError:
        return MonitorState(waits=value if isinstance(value, str) else "")
