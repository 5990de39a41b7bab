"""What an assembler keeps from one holder of its lease to the next, and what the bus says is published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, field, fields, replace
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.done_traces import DoneRun
from pytest_tfgrpo.production.assembly.trajectories import (
    trajectory_digest,
    trajectory_event_id,
    trajectory_id,
)
from pytest_tfgrpo.storage.event_store import BusEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblyState:
    """A place in the streams."""

    cursor: int = 0
    """Sequence up to which RL_SPANS was read."""
    spans_from: int = 1
    """Sequence of the oldest event of a trace that is open."""
    trajectories_from: int = 1
    """Sequence in RL_TRAJECTORIES of the oldest trace that is remembered."""
    sure_to: int | None = None
    """Sequence in RL_TRAJECTORIES up to which traces are published whole; None: all are."""
    late: int = 0
    """Spans so far that came after their trace was published."""
    again: list[str] = field(default_factory=list)
    """Traces that are published and open again, for spans that came late."""

    @classmethod
    def of(cls, value: Json) -> AssemblyState:
        """Return the state in `value`; at first there is none."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: one for name, one in (value or {}).items() if name in known})

    def within(self, spans: int, trajectories: int) -> AssemblyState:
        """Return the state, or that of the beginning where streams end before it: they were made anew."""
        whole = self.cursor <= spans and self.trajectories_from <= trajectories + 1
        return self if whole else AssemblyState(late=self.late)

    def value(self) -> Json:
        """Return the state as JSON."""
        return asdict(self)

    def is_sure(self, sequence: int) -> bool:
        """Return whether the trace of a trajectory is published whole."""
        return self.sure_to is None or sequence <= self.sure_to

    def unsure(self, sequence: int) -> AssemblyState:
        """Return the state before traces are published in several steps."""
        return replace(self, sure_to=sequence)


class PublishedTrajectory(NamedTuple):
    """A trajectory that was made of spans."""

    trace: str
    span: str
    run: DoneRun
    sequence: int
    arrived: float


def published(events: Iterable[BusEvent]) -> Iterator[PublishedTrajectory]:
    """Yield the trajectories among events of RL_TRAJECTORIES that an assembler made."""
    for event in events:
        if b'"trace_id"' not in event.data:
            continue
        try:
            payload = json.loads(event.data)
            trace, span = (payload["metadata"][name] for name in ("trace_id", "span_id"))
            revision = int(payload["metadata"].get("revision", 1))
            run = DoneRun(revision, trajectory_digest(payload))
            made = trajectory_event_id(trajectory_id(trace, span), revision) == event.id
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if made:
            yield PublishedTrajectory(trace, span, run, event.sequence, event.arrived)
