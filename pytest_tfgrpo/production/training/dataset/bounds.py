"""How much of the streams a dataset reads, and the rows of the view that this is."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.view.view import REWARDS, TRAJECTORIES, LoopView

STREAMS = (TRAJECTORIES, REWARDS)
"""Those that a dataset depends on."""
_NEWEST = "t.seq <= :trajectories"
_EARLIER = f"""{_NEWEST} AND NOT EXISTS
    (SELECT 1 FROM trajectories n WHERE n.id = t.id AND n.seq <= :trajectories) AND NOT EXISTS
    (SELECT 1 FROM superseded n WHERE n.id = t.id AND n.seq <= :trajectories AND n.revision > t.revision)"""
_TABLES = {"trajectories": _NEWEST, "superseded": _EARLIER}


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetBounds:
    """Sequences: trajectories up to one event, with the rewards up to another."""

    trajectories: int
    rewards: int

    @property
    def watermark(self) -> dict[str, int]:
        """The last event of each stream."""
        return {TRAJECTORIES: self.trajectories, REWARDS: self.rewards}

    def tables(self) -> Mapping[str, str]:
        """Return the tables `t` of the view, with a condition: each trajectory in its newest revision."""
        return _TABLES

    def values(self) -> dict[str, object]:
        """Return what the conditions are given."""
        return {"trajectories": self.trajectories, "rewards": self.rewards}


def bounds_of(view: LoopView, watermark: Mapping[str, int] | None) -> DatasetBounds:
    """Return the bounds of a dataset, without a watermark up to what the view has.

    Raises StoreError for a watermark of events that are not there yet.
    """
    known = {stream: view.position(stream) for stream in STREAMS}
    for stream, sequence in (watermark or {}).items():
        if sequence > known.get(stream, 0):
            raise StoreError(
                f"the watermark names event {sequence} of {stream}, which has {known.get(stream, 0)}; is it "
                "the watermark of another bus?"
            )
    asked = {**known, **(watermark or {})}
    return DatasetBounds(trajectories=asked[TRAJECTORIES], rewards=asked[REWARDS])


def count_rows(view: LoopView, bounds: DatasetBounds) -> tuple[int, int]:
    """Return what changes where something was taken out of the view meanwhile."""
    counted = [
        view.rows(f"SELECT count(*) FROM {table} t WHERE {where}", bounds.values())[0][0]
        for table, where in bounds.tables().items()
    ]
    return view.generation, sum(counted)
