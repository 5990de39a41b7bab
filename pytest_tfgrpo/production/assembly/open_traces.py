"""Traces whose spans are still coming, in memory of a bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import NO_SPAN
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, RefusedSpan, RefusedTrace, TraceOutcome, TraceSpan

MAX_SPANS = 10_000
"""Spans of one trace; with more it is taken as it stands."""
MAX_TRACE_BYTES = 64 << 20
"""Bytes of the events of one trace."""
MAX_BYTES = 256 << 20
"""Bytes of the events of all open traces; with more the one that is silent longest is taken as it stands."""
MAX_TRACES = 20_000
MAX_OPEN_S = 3600.0
"""After which a trace that never rests is taken as it stands."""
DONE_S = 3600.0
"""How long those that are done are remembered."""
MAX_LATE = 1000
"""Traces that are done and open again, for spans that came late."""


class StreamTime:
    """Time by the stamps of what arrived, and by how long nothing did; never back.

    It goes by what is in the stream, so that whoever reads that later comes to the same times. Where the
    stream is read to its end, the reader's own clock moves it on; no clock is compared with another's.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = 0.0
        self._clock = clock
        self._ended: tuple[float, float] | None = None
        """When the reader was at the end of the stream, by its own clock and by this one."""

    def saw(self, arrived: float) -> None:
        """Take the stamp of an event."""
        self.now = max(self.now, arrived)

    def at_end(self, *, ended: bool) -> bool:
        """Take whether a reader is at the end of the stream; return whether that moved the time."""
        clock, last = self._clock(), self.now
        if ended and self._ended is not None:
            before, then = self._ended
            self.now = max(self.now, then + clock - before)
        self._ended = (clock, self.now) if ended else None
        return self.now > last


@dataclass(slots=True)
class OpenTrace:
    """What is here of a trace."""

    first: int
    """Sequence of its first event."""
    since: float
    """Stream time of that."""
    seen: float
    """Stream time of its newest event."""
    at: str = ""
    """Time that the newest event bears."""
    size: int = 0
    forest: SpanForest = field(default_factory=lambda: SpanForest(read_span))
    events: dict[str, int] = field(default_factory=dict)
    """Sequences of its events by id."""
    fresh: set[str] = field(default_factory=set)
    """Spans that came since it was last done."""
    _spans: set[str] = field(default_factory=set)
    _missing: set[str] = field(default_factory=set)
    """Parents that are not here."""
    _rooted: bool = False
    _heads: set[str] = field(default_factory=set)

    def take(self, spans: Sequence[TraceSpan]) -> None:
        """Take spans; one that is here already changes nothing."""
        self.forest.take(spans)
        for span in spans:
            if span.key[1] not in self._spans:
                self.fresh.add(span.key[1])
            self._spans.add(span.key[1])
            self._heads.add(span.parent or span.key[1])
            self._missing.discard(span.key[1])
            if not span.parent:
                self._rooted = True
            elif span.parent not in self._spans and span.parent != NO_SPAN:
                self._missing.add(span.parent)

    @property
    def ended(self) -> bool:
        """Whether the root is here, and the parent of each span."""
        return self._rooted and not self._missing

    @property
    def full(self) -> bool:
        """Whether it may not grow any more."""
        return len(self._spans) > MAX_SPANS or self.size > MAX_TRACE_BYTES

    def heads(self) -> list[str]:
        """Return the ids of the spans that may be an agent's: its roots, and what has spans below it."""
        return sorted(self._heads)

    def result(self) -> TraceResult:
        """Return what the spans amount to; of strays and what is refused, only the fresh spans'."""
        runs = self.forest.runs(whole_trace=True)
        strays = [
            (key[1], one)
            for key, found in self.forest.strays.items()
            for one in found
            if one.place in self.fresh
        ]
        refused = [
            one
            for one in self.forest.refused
            if one.reason is not RefusedTrace.DUPLICATE and (one.key is None or one.key[1] in self.fresh)
        ]
        return TraceResult(runs=runs, strays=strays, refused=refused)


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceResult:
    """What a trace came to."""

    runs: list[AgentRun]
    strays: list[tuple[str, TraceOutcome]]
    """Evaluations outside of the runs, each with the id of the span that it is about."""
    refused: list[RefusedSpan]


class OpenTraces:
    """By trace id, the one that is silent longest first."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, OpenTrace] = OrderedDict()
        self._size = 0
        self._settling: OrderedDict[str, None] = OrderedDict()
        """Those of which all is here, the one that is silent longest first."""
        self._fresh: set[str] = set()
        """Traces that had an event since the last look at the time."""
        self._again: OrderedDict[str, None] = OrderedDict()
        """Those that were done before, the one that was opened first first."""

    def take(self, trace: str, event: SpansEvent, now: float) -> OpenTrace:
        """Put the spans of an event to their trace, which it returns."""
        found = self._open.get(trace)
        if found is None:
            found = self._open[trace] = OpenTrace(first=event.sequence, since=now, seen=now)
        self._open.move_to_end(trace)
        self._fresh.add(trace)
        found.seen, found.at = now, event.at
        found.size += event.size
        self._size += event.size
        found.events[event.id] = event.sequence
        found.take(event.spans)
        self._settling.pop(trace, None)
        if found.ended:
            self._settling[trace] = None
        return found

    def again(self, trace: str, found: OpenTrace) -> None:
        """Open a trace again that was done."""
        self._open[trace] = found
        self._again[trace] = None
        self._size += found.size

    def pop(self, trace: str) -> OpenTrace | None:
        """Return a trace that is open no longer."""
        found = self._open.pop(trace, None)
        self._settling.pop(trace, None)
        self._again.pop(trace, None)
        if found is not None:
            self._size -= found.size
        return found

    def looked(self, now: float, *, moved: bool) -> None:
        """Take whether the time moved on after all was read, which then may have come just now."""
        for trace in self._fresh & self._open.keys() if moved else ():
            self._open[trace].seen = now
        self._fresh.clear()

    def idle(self, until: float) -> Iterator[str]:
        """Yield the traces that were silent since `until`, each to be popped before the next."""
        while self._open:
            trace, found = next(iter(self._open.items()))
            if found.seen > until:
                return
            yield trace

    def settled(self, until: float) -> Iterator[str]:
        """Yield the traces of which all is here and that were silent since `until`, likewise."""
        while self._settling:
            trace = next(iter(self._settling))
            if self._open[trace].seen > until:
                return
            yield trace

    def too_many(self) -> Iterator[str]:
        """Yield the traces that there is no room for, each to be popped before the next."""
        while len(self._open) > MAX_TRACES or self._size > MAX_BYTES:
            yield next(iter(self._open))

    def too_many_again(self) -> Iterator[str]:
        """Yield the traces open again that there is no room for beside one more, likewise."""
        while len(self._again) >= MAX_LATE:
            yield next(iter(self._again))

    def __contains__(self, trace: str) -> bool:
        return trace in self._open

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def first(self, otherwise: int) -> int:
        """Return the sequence of the oldest event that is still needed."""
        return min((found.first for found in self._open.values()), default=otherwise)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpansEvent:
    """An event of RL_SPANS, decoded."""

    id: str
    sequence: int
    at: str
    size: int
    spans: Sequence[TraceSpan]
