"""Traces that are published, and their spans for those that come late, in memory of a bounded size."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import field
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.assembly.open_traces import DONE_S, MAX_TRACES, OpenTrace
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.span_events import SPANS, decode_spans, trace_in
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE

MAX_DONE = 100_000
"""Traces that are remembered once they are done."""
MAX_KEPT_BYTES = 16 << 20
"""Bytes of the events of traces that are done and whose spans are still at hand."""


class DoneRun(NamedTuple):
    """What is published of a run."""

    revision: int
    digest: str


@dataclass(slots=True)
class DoneTrace:
    """A trace that has trajectories."""

    first: int
    """Sequence of its first trajectory; 0 until that is known."""
    at: float
    """When it was done."""
    runs: dict[str, DoneRun] = field(default_factory=dict)
    """By the ids of the agents' spans."""
    full: bool = False
    """It had as many spans as a trace may have; what comes later is read without them."""
    spans_from: int = 1
    """Sequence of RL_SPANS from which on its spans are."""
    sure: bool = True
    """It was published whole once; not so where a process ended amid that, on a bus that is not atomic."""


class DoneTraces:
    """By trace id, in the order in which they were done."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, DoneTrace] = OrderedDict()

    def __contains__(self, trace: str) -> bool:
        return trace in self._done

    def __getitem__(self, trace: str) -> DoneTrace:
        return self._done[trace]

    def get(self, trace: str) -> DoneTrace | None:
        """Return a trace that is done."""
        return self._done.get(trace)

    def add(self, trace: str, span: str, run: DoneRun, at: float, *, sequence: int = 0) -> DoneTrace:
        """Remember a run that is published, or about to be."""
        found = self._done.get(trace)
        if found is None:
            found = self._done[trace] = DoneTrace(first=sequence, at=at)
        known = found.runs.get(span)
        if known is None or known.revision <= run.revision:
            found.runs[span] = run
        found.at = max(found.at, at)
        return found

    def pop(self, trace: str) -> DoneTrace | None:
        """Forget a trace."""
        return self._done.pop(trace, None)

    def published(self, trace: str, sequence: int) -> None:
        """Note where a trajectory of a trace is."""
        found = self._done.get(trace)
        if found is not None:
            found.first = min(found.first or sequence, sequence)

    def forget(self, now: float) -> None:
        """Forget what was done long ago, or is too much."""
        while self._done:
            found = next(iter(self._done.values()))
            if len(self._done) <= MAX_DONE and found.at > now - DONE_S:
                return
            self._done.popitem(last=False)

    def first(self, otherwise: int) -> int:
        """Return the sequence of the oldest trajectory that is still needed."""
        return min((found.first for found in self._done.values() if found.first), default=otherwise)


class KeptTraces:
    """Traces that are done, with their spans, for those that come late; the oldest go first.

    What is not kept any more is read from RL_SPANS again.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._kept: OrderedDict[str, OpenTrace] = OrderedDict()
        self._size = 0

    def keep(self, trace: str, found: OpenTrace) -> None:
        """Keep a trace, unless it is too large."""
        self.pop(trace)
        self._kept[trace] = found
        self._size += found.size
        while self._size > MAX_KEPT_BYTES or len(self._kept) > MAX_TRACES:
            self._size -= self._kept.popitem(last=False)[1].size

    def pop(self, trace: str) -> OpenTrace | None:
        """Return a trace with its spans, if they are still here; it is kept no longer."""
        found = self._kept.pop(trace, None)
        self._size -= 0 if found is None else found.size
        return found

    def reopened(self, trace: str, event: BusEvent, *, since: float, now: float) -> OpenTrace:
        """Return a trace that is done, with the spans that came before an event, to be kept no longer.

        Its spans are looked for in the stream from `since` on, in seconds since 1970. Raises BusError.
        """
        found = self.pop(trace) or self._read(trace, event.sequence, since)
        found.first, found.since, found.seen = event.sequence, now, now
        found.fresh.clear()
        found.events.clear()
        return found

    def _read(self, trace: str, before: int, since: float) -> OpenTrace:
        found = OpenTrace(first=before, since=since, seen=since)
        for event in self._bus.replay(SPANS, since_time=max(0.0, since)):
            if event.sequence >= before or found.full:
                break
            if trace_in(event.data) == trace:
                with suppress(*UNREADABLE):  # it became a dead letter when it was read first
                    found.take(decode_spans(event.data)[1] or ())
                    found.size += len(event.data)
        return found
