"""How far a sink is, as its lease keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

SINKS = ("warehouse", "archive", "logs")


def lease_name(sink: str) -> str:
    """Return the job of the lease of a sink."""
    return f"sink-{sink}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkState:
    """Positions and counts of a sink."""

    positions: Mapping[str, int]
    """By stream, the sequence up to which its events are stored."""
    lost: int = 0
    """Events that the streams let go of before the sink took them, at most: some may have been forgotten."""
    refused: int = 0
    """Events that are no JSON, or that the sink never takes."""
    old: int = 0
    """Events that were older than the sink keeps any when they came."""
    error: str = ""
    """Why it waits; empty: it does not."""
    since: str = ""
    """When that began."""

    @classmethod
    def of(cls, wire: Json) -> SinkState | None:
        """Return what a lease kept; None where nobody had it yet. Raises BusError."""
        if wire is None:
            return None
        try:
            return cls(**wire)
        except TypeError:
            raise BusError(
                f"a lease of a sink keeps {wire!r:.200}; put the bus back from a copy of its data"
            ) from None

    def wire(self) -> dict[str, Json]:
        """Return what a lease keeps."""
        return asdict(self)

    def at(self, stream: str, sequence: int, counts: Mapping[str, int] | None = None) -> SinkState:
        """Return the state once a stream is stored up to a sequence, and what was left out on the way."""
        more = counts or {}
        return replace(
            self.well(),
            positions={**self.positions, stream: sequence},
            lost=self.lost + more.get("lost", 0),
            refused=self.refused + more.get("refused", 0),
            old=self.old + more.get("old", 0),
        )

    def well(self) -> SinkState:
        """Return the state of a sink that takes events."""
        return replace(self, error="", since="")

    def failing(self, error: str, now: str) -> SinkState:
        """Return the state of a sink that waits."""
        return replace(self, error=error, since=self.since or now)
