"""How much of the streams a dataset reads, and the rows of the view that this is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.view.view import REWARDS, TRAJECTORIES, LoopView

STREAMS = (TRAJECTORIES, REWARDS)
"""Those that a dataset depends on."""
_AT_ONCE = 5000


class AttemptRow(NamedTuple):
    """What the view has of an attempt, as of a watermark."""

    seq: int
    """In RL_TRAJECTORIES."""
    session: str
    user_ref: str | None
    domain: str
    task_key: str | None
    policy_version: str | None
    ended: str
    turns: int
    trace_id: str | None
    agent: str
    profile: str | None
    model: str | None
    wording: str | None
    blocked: int
    total: float | None
    """Of the newest reward that was computed here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetBounds:
    """Sequences: trajectories after one event up to another, with the rewards up to a third."""

    after: int
    trajectories: int
    rewards: int

    @property
    def watermark(self) -> dict[str, int]:
        """The last event of each stream."""
        return {TRAJECTORIES: self.trajectories, REWARDS: self.rewards}


def bounds_of(view: LoopView, watermark: Mapping[str, int] | None, since: Mapping[str, int]) -> DatasetBounds:
    """Return the bounds of a dataset, without a watermark up to what the view has.

    `since` is the watermark of a dataset before, whose trajectories are not read again. Raises StoreError
    for a watermark of events that are not there yet.
    """
    known = {stream: view.position(stream) for stream in STREAMS}
    for stream, sequence in (watermark or {}).items():
        if sequence > known.get(stream, 0):
            raise StoreError(
                f"the watermark names event {sequence} of {stream}, which has {known.get(stream, 0)}; is it "
                "the watermark of another bus?"
            )
    asked = {**known, **(watermark or {})}
    return DatasetBounds(
        after=since.get(TRAJECTORIES, 0), trajectories=asked[TRAJECTORIES], rewards=asked[REWARDS]
    )


_COLUMNS = """t.seq, t.session, t.user_ref, t.domain, t.task_key, t.policy_version, t.ended, t.turns,
    t.trace_id, t.agent, t.profile, t.model, t.wording, t.blocked,
    (SELECT total FROM rewards WHERE trajectory_id = t.id AND own AND seq <= :rewards
     ORDER BY revision DESC LIMIT 1)"""
_NEWEST = "t.seq > :after AND t.seq <= :trajectories"
_EARLIER = f"""{_NEWEST} AND NOT EXISTS
    (SELECT 1 FROM trajectories n WHERE n.id = t.id AND n.seq <= :trajectories) AND NOT EXISTS
    (SELECT 1 FROM superseded n WHERE n.id = t.id AND n.seq <= :trajectories AND n.revision > t.revision)"""
_TABLES = {"trajectories": _NEWEST, "superseded": _EARLIER}


def attempt_rows(view: LoopView, bounds: DatasetBounds) -> Iterator[AttemptRow]:
    """Yield every attempt within the bounds once, as its newest revision there; raises BusError."""
    for table, where in _TABLES.items():
        query = f"SELECT {_COLUMNS} FROM {table} t WHERE {where} ORDER BY t.seq LIMIT {_AT_ONCE}"
        after = bounds.after
        while page := view.rows(query, {**_values(bounds), "after": after}):
            yield from map(AttemptRow._make, page)
            after = page[-1][0]


def count_rows(view: LoopView, bounds: DatasetBounds) -> tuple[int, int]:
    """Return what changes where something was taken out of the view meanwhile."""
    counted = [
        view.rows(f"SELECT count(*) FROM {table} t WHERE {where}", _values(bounds))[0][0]
        for table, where in _TABLES.items()
    ]
    return view.generation, sum(counted)


def _values(bounds: DatasetBounds) -> dict[str, object]:
    return {"after": bounds.after, "trajectories": bounds.trajectories, "rewards": bounds.rewards}
