"""Traces of which nothing is kept: what came before is overwritten, what comes later is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.production.assembly.open_traces import DONE_S
from pytest_tfgrpo.production.assembly.trajectories import trajectory_event_id, trajectory_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.span_events import SPANS, trace_in
from pytest_tfgrpo.storage.event_store import STATE

TRAJECTORIES, FEEDBACK, REWARDS = "RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS"
PREFIX = "dropped."
"""Start of the keys of rows that name traces which opted out."""
_FLUSH_S = 5.0
"""How long events may wait: each look for them goes through the whole stream."""
_FLUSH_EVENTS = 1000


class DroppedTraces:
    """The traces that opted out, as rows of a table, and the events that are to be overwritten."""

    def __init__(self, bus: Bus, clock: Callable[[], float]) -> None:
        """Raises BusError."""
        self._bus, self._clock = bus, clock
        self._table = bus.table(STATE)
        rows = self._table.list(PREFIX)
        self._rows = {key.removeprefix(PREFIX): float(json.loads(value)) for key, (value, _) in rows.items()}
        self._spans: dict[str, int] = {}
        """Events of RL_SPANS to overwrite, and their sequences."""
        self._trajectories: dict[str, int] = {}
        """Trajectories to overwrite, with their feedback and rewards, and the numbers of their revisions."""
        self._done: dict[str, int] = {}
        """Traces of those trajectories, and where their spans begin."""
        self._since: float | None = None

    def __contains__(self, trace: str) -> bool:
        return trace in self._rows

    def add(self, trace: str, now: float) -> None:
        """Keep nothing of a trace from now on; `now` is stream time. Raises BusError."""
        if trace not in self._rows:
            with suppress(RevisionConflict):  # whoever had the lease before did it
                self._table.put(PREFIX + trace, json.dumps(now).encode(), 0)
            self._rows[trace] = now

    def doom(self, events: Mapping[str, int]) -> None:
        """Have events of RL_SPANS overwritten, by id, with their sequences."""
        self._spans.update(events)
        self._since = self._clock() if self._since is None else self._since

    def doom_runs(self, trace: str, runs: Mapping[str, int], first: int) -> None:
        """Have the trajectories of a trace overwritten, their feedback and rewards, and its spans.

        `runs` are the numbers of their revisions by the ids of their agents' spans. The trace's spans are
        looked for from the sequence `first` on.
        """
        self._done[trace] = first
        self._trajectories |= {trajectory_id(trace, run): last for run, last in runs.items()}
        self._since = self._clock() if self._since is None else self._since

    def first(self, otherwise: int) -> int:
        """Return the sequence of the oldest event that is still to be overwritten."""
        return min([otherwise, *self._spans.values()])

    def flush_if_due(self, now: float) -> None:
        """Overwrite what waited long enough, or is much; raises BusError."""
        waited = 0.0 if self._since is None else self._clock() - self._since
        if waited >= _FLUSH_S or len(self._spans) >= _FLUSH_EVENTS:
            self.flush(now)

    def flush(self, now: float) -> None:
        """Overwrite all of it, and forget the traces that were dropped long ago; raises BusError."""
        if self._done:
            spans = self._bus.replay(SPANS, since_sequence=min(self._done.values()))
            self._spans |= {event.id: event.sequence for event in spans if trace_in(event.data) in self._done}
        if self._spans:
            self._bus.delete(SPANS, self._spans.keys())
        if self._trajectories:
            revisions = [(key, n) for key, last in self._trajectories.items() for n in range(1, last + 1)]
            self._bus.delete(TRAJECTORIES, [trajectory_event_id(key, n) for key, n in revisions])
            self._delete_claims(FEEDBACK, 0.0)
            self._delete_claims(REWARDS, max(0.0, now - 2 * DONE_S))  # they follow their trajectories
        self._spans, self._done, self._trajectories, self._since = {}, {}, {}, None
        for trace in [trace for trace, at in self._rows.items() if at < now - DONE_S]:
            self._forget(trace)

    def _delete_claims(self, stream: str, since: float) -> None:
        """Overwrite what a stream says of the trajectories since a time of arrival."""
        names = [one.encode() for one in self._trajectories]
        found = self._bus.replay(stream, since_time=since)
        ids = [event.id for event in found if any(name in event.data for name in names)]
        if ids:
            self._bus.delete(stream, ids)

    def _forget(self, trace: str) -> None:
        value, revision = self._table.get(PREFIX + trace)
        if value is not None:
            with suppress(RevisionConflict):
                self._table.remove(PREFIX + trace, revision)
        del self._rows[trace]
