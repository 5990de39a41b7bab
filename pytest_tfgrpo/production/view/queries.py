"""Questions to the view: its trajectories, and counts of what the streams hold; each raises BusError."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.view.view import STREAM_TABLES, LoopView, event_at


class LoopTrajectory(NamedTuple):
    """A trajectory and its newest reward."""

    id: str
    sequence: int
    """In RL_TRAJECTORIES."""
    session: str
    domain: str
    task_key: str | None
    policy_version: str | None
    trace_id: str | None
    total: float | None
    """Its newest reward, from 0 to 1; None: none, since too little is known."""
    silent: int
    """1: no text of it was recorded."""
    failed: int = 0
    """1: it ended in an error, or was noted as failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewPlace:
    """Where an event of a trajectory is on the bus."""

    stream: str
    sequence: int
    id: str
    """Of the trajectory, feedback or reward."""
    own: bool = False
    """A reward that was computed here."""


_JOINED = """SELECT t.id, t.seq, t.session, t.domain, t.task_key, t.policy_version, t.trace_id, r.total,
    t.silent, coalesce(json_extract(t.slim, '$.outcome.task_status') = 'failed', 0)
    FROM trajectories t LEFT JOIN rewards r ON r.id = (SELECT id FROM rewards WHERE trajectory_id = t.id
    AND own ORDER BY revision DESC LIMIT 1)"""


def trajectories(view: LoopView) -> Iterator[LoopTrajectory]:
    """Yield every trajectory in the order of arrival, each one once."""
    start = 0
    while page := view.rows(f"{_JOINED} WHERE t.seq > ? ORDER BY t.seq LIMIT 1000", (start,)):
        for row in page:
            yield LoopTrajectory(*row)
        start = page[-1][1]


def find(view: LoopView, trajectory_id: str) -> list[LoopTrajectory]:
    """Return the trajectories whose id starts so, 10 at most."""
    query = f"{_JOINED} WHERE t.id >= ? AND t.id < ? ORDER BY t.id LIMIT 10"
    low = trajectory_id.lower()
    return [LoopTrajectory(*row) for row in view.rows(query, (low, low + "\x7f"))]


def places(view: LoopView, trajectory_id: str) -> list[ViewPlace]:
    """Return where the events of a trajectory are: its own, feedback, rewards, in this order."""
    query = """SELECT 'RL_TRAJECTORIES', seq, id, 0 FROM trajectories WHERE id = :id
        UNION ALL SELECT 'RL_FEEDBACK', seq, id, 0 FROM feedback WHERE trajectory_id = :id
        UNION ALL SELECT 'RL_REWARDS', seq, id, own FROM rewards WHERE trajectory_id = :id"""
    order = list(STREAM_TABLES)
    found = [
        ViewPlace(stream=stream, sequence=sequence, id=key, own=bool(own))
        for stream, sequence, key, own in view.rows(query, {"id": trajectory_id})
    ]
    return sorted(found, key=lambda place: (order.index(place.stream), place.sequence))


def stored(view: LoopView) -> dict[str, int]:
    """Return how many different events of each stream there are."""
    return {
        stream: int(view.rows(f"SELECT count(*) FROM {table}")[0][0])
        for stream, table in STREAM_TABLES.items()
    }


def rewarded(view: LoopView) -> tuple[int, int]:
    """Return the numbers of first rewards and of later revisions that were computed here."""
    row = view.rows(
        "SELECT coalesce(sum(revision = 1), 0), coalesce(sum(revision > 1), 0) FROM rewards WHERE own"
    )[0]
    return int(row[0]), int(row[1])


def revised(view: LoopView) -> int:
    """Return how many trajectories were published again, each time counted."""
    return int(view.rows("SELECT coalesce(sum(revision - 1), 0) FROM trajectories")[0][0])


def redacted(view: LoopView) -> dict[str, int]:
    """Return how many values of each kind were taken out of what is stored, each once in an event."""
    tables = ("trajectories", "feedback", "rewards", "dead")
    parts = " UNION ALL ".join(f"SELECT redacted FROM {table} WHERE redacted IS NOT NULL" for table in tables)
    query = f"SELECT key, sum(value) FROM ({parts}), json_each(redacted) GROUP BY key ORDER BY key"
    return {key: int(count) for key, count in view.rows(query)}


def dead(view: LoopView) -> dict[str, int]:
    """Return the numbers of dead letters by code."""
    return dict(view.rows("SELECT code, count(*) FROM dead GROUP BY code ORDER BY code"))


def audited(view: LoopView) -> dict[str, int]:
    """Return the numbers of audit events by action."""
    return dict(view.rows("SELECT action, count(*) FROM audit GROUP BY action ORDER BY action"))


def payload_at(bus: Bus, place: ViewPlace) -> Json:
    """Return the payload of an event with its texts; None where it is gone. Raises BusError."""
    event = event_at(bus, place.stream, place.sequence)
    try:
        return None if event is None else json.loads(event.data)
    except (ValueError, RecursionError) as error:
        raise BusError(f"event {place.sequence} of {place.stream} is no JSON: {error}") from error
