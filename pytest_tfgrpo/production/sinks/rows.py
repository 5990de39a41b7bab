"""Events as sinks store them: one line each, with whose they are, by pseudonym."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import finite, load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.named_in import NamedIn
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.view.view import DEPLOYMENTS, REWARDS, TRAINING, TRAJECTORIES
from pytest_tfgrpo.storage.event_store import BusEvent

TABLES: Mapping[str, str] = {
    TRAJECTORIES: "trajectories",
    REWARDS: "rewards",
    TRAINING: "training",
    DEPLOYMENTS: "deployments",
}
"""The streams that sinks follow, and what their rows are called together."""
KEPT_DAYS = 90
"""How old an event may be in the archive and the warehouse."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkRow:
    """One event."""

    table: str
    id: str
    subject: str
    time: str
    """When it happened, ISO 8601 in UTC, no later than the bus stored it."""
    data: Mapping[str, Json]
    trajectory: str = ""
    """Whose run it tells of, by pseudonym."""
    sessions: tuple[str, ...] = ()
    """Pseudonyms of those that it names."""
    users: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The data as JSON on one line, in ASCII."""
        return _encoded(self.data)


class RowReader:
    """Makes rows of events."""

    def __init__(self, scrubber: LoopScrubber) -> None:
        self._scrubber = scrubber
        self._names = NamedIn(scrubber)

    def read(self, stream: str, event: BusEvent) -> SinkRow | None:
        """Return the row of an event; None for what is no JSON object."""
        try:
            data = load_json(event.data, parse_float=finite, parse_constant=finite)
        except ValueError:
            return None
        if not isinstance(data, dict):
            return None
        of = data.get("trajectory_id")
        return SinkRow(
            table=TABLES[stream],
            id=event.id,
            subject=event.subject,
            time=_time(event),
            data=data,
            trajectory=self._scrubber.ref("trajectory", of.lower()) if isinstance(of, str) else "",
            sessions=tuple(sorted(self._names.sessions(event.data))),
            users=tuple(sorted(self._names.users(event.data))),
        )


def _time(event: BusEvent) -> str:
    arrived = utc_time(datetime.fromtimestamp(event.arrived, UTC).isoformat()) or ""
    return min(utc_time(event.time) or arrived, arrived)


_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
