"""Which alerts were called, as the row of the lease has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.storage.event_store import Table
from pytest_tfgrpo.storage.lease import lease_state

LEASE = "alerts"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertState:
    """How far the alerts are."""

    positions: Mapping[str, int] = field(default_factory=dict)
    """Sequence of each stream up to which alerts were called; empty before the first look."""
    raised: Mapping[str, float] = field(default_factory=dict)
    """Since when a condition is known, by the name of its alert, Unix time."""
    calling: str = ""
    """Summary of the alert whose call has begun and not ended."""
    ok: int = 0
    failed: int = 0
    """Calls by their outcome."""
    last_failure: str = ""


def state_of(kept: Json) -> AlertState:
    """Return what was kept; where that cannot be read alerts begin anew."""
    try:
        return from_wire(AlertState, kept)
    except ValueError:
        return AlertState()


def alert_state(rows: Table) -> AlertState:
    """Return how far the alerts are, whoever calls them; raises BusError."""
    return state_of(lease_state(rows, LEASE))
