"""An assembly: the traces that one holder of the lease has in hand, and what it publishes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.assembly.done_traces import DoneTraces, KeptTraces
from pytest_tfgrpo.production.assembly.dropped_traces import TRAJECTORIES, DroppedTraces
from pytest_tfgrpo.production.assembly.open_traces import MAX_OPEN_S, OpenTraces, SpansEvent, StreamTime
from pytest_tfgrpo.production.assembly.state import AssemblyState, published
from pytest_tfgrpo.production.assembly.trace_events import (
    ASSEMBLER,
    PublishedRun,
    TraceEvents,
    dead,
    events_of,
    stray_events,
)
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.dead_letters import died
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.span_events import SPANS, decode_spans
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.storage.lease import Lease
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE, RefusedTrace, SpanReading, TraceSpan

_STEP_EVENTS = 500
"""Events that one step reads at most."""
_STEP_BYTES = 16 << 20
_PART_BYTES = 4 << 20
"""Of events that are published at once."""
MALFORMED = RefusedTrace.MALFORMED.value
_SAVE_S = 2.0
"""How long a place in the stream may be unsaved where there is nothing to publish."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblyContext:
    """What an assembly works with."""

    bus: Bus
    lease: Lease
    idle_s: float
    """Without a span, after which a trace is complete."""
    settle_s: float
    """The same, for a trace of which all is here."""
    clock: Callable[[], float]
    refuses: Callable[[str, str, float], bool]
    """Whether nothing is kept of a session or user, by the pseudonym of the user and seconds since 1970."""
    forgo: Callable[[Sequence[str]], object]
    """Takes the ids of trajectories that are not to be for that."""


class Assembly:
    """What one process assembles while it holds the lease."""

    def __init__(self, context: AssemblyContext) -> None:
        """Begin from what the last holder kept; raises BusError."""
        bus, clock = context.bus, context.clock
        self._context = context
        self._state = AssemblyState.of(context.lease.state).within(bus.last(SPANS), bus.last(TRAJECTORIES))
        self._time = StreamTime(clock)
        self._open, self._done = OpenTraces(), DoneTraces()
        self._kept = KeptTraces(bus)
        self._dropped = DroppedTraces(bus, clock)
        self._outputs: list[BusEvent] = []
        self._late = self._state.late
        self._saved_at = clock()
        self._next = self._state.spans_from
        self._last_trajectory = self._state.trajectories_from - 1
        self._runs: dict[str, tuple[str, PublishedRun]] = {}
        for run in published(bus.replay(TRAJECTORIES, since_sequence=self._state.trajectories_from)):
            before = self._done.get(run.trace)
            done = self._done.add(run.trace, run.span, run.run, run.arrived, sequence=run.sequence)
            done.sure = self._state.is_sure(run.sequence) or (before is not None and before.sure)
            self._done.forget(run.arrived)
            self._last_trajectory = run.sequence

    def flush(self) -> None:
        """Overwrite at once what is to go; raises BusError."""
        self._dropped.flush(self._time.now)

    def read(self) -> int:
        """Read what is new, and complete what it completes; return how many events were read."""
        count = size = 0
        last = self._context.bus.last(SPANS)
        if self._next <= last:
            events = self._context.bus.replay(SPANS, since_sequence=self._next)
            for event in islice(events, _STEP_EVENTS):
                self._time.saw(event.arrived)
                self._complete_idle(old=event.sequence <= self._state.cursor)
                self._take(event)
                self._next = event.sequence + 1
                count += 1
                size += len(event.data)
                if size >= _STEP_BYTES:
                    break
            else:
                if count < _STEP_EVENTS:
                    self._next = max(self._next, last + 1)  # the rest was deleted
        ended = self._next > last
        moved = self._time.at_end(ended=ended)
        self._open.looked(self._time.now, moved=moved)
        if ended:
            self._complete_idle(old=False)
        return count

    def _take(self, event: BusEvent) -> None:
        old = event.sequence <= self._state.cursor
        try:
            trace, spans = decode_spans(event.data)
            if spans is None:
                self._drop(trace, {event.id: event.sequence})
            elif trace in self._dropped:
                self._dropped.doom({event.id: event.sequence})
            elif spans := self._wanted(trace, spans, event, old=old):
                self._add(trace, spans, event, old=old)
        except UNREADABLE as error:
            if not old:
                self._outputs.append(died(event, SPANS, ASSEMBLER, MALFORMED, repr(error)[:200]))

    def _add(self, trace: str, spans: list[TraceSpan], event: BusEvent, *, old: bool) -> None:
        here = SpansEvent(
            id=event.id, sequence=event.sequence, at=event.time, size=len(event.data), spans=spans
        )
        found = self._open.take(trace, here, self._time.now)
        settled = found.ended and not self._context.settle_s
        if settled or found.full or found.since + MAX_OPEN_S <= self._time.now:
            self._complete(trace, old=old)
        for silent in self._open.too_many():
            self._complete(silent, old=old)

    def _wanted(self, trace: str, spans: list[TraceSpan], event: BusEvent, *, old: bool) -> list[TraceSpan]:
        """Return the spans that belong to a trace, which is opened again if it is done.

        An evaluation alone does not: it is published at once.
        """
        done = self._done.get(trace)
        if done is None or not done.sure or trace in self._open:
            return spans
        found = []
        for span in spans:
            reading = _reading(span)
            if reading.step is not None or not reading.outcomes:
                found.append(span)
                continue
            about = span.key[1] if span.key[1] in done.runs else span.parent
            for outcome in () if old else reading.outcomes:
                self._outputs += stray_events(trace, about, outcome, done.runs, event.time)
        if old and trace not in self._state.again:
            return []
        if found and not done.full:
            since, now = done.at - MAX_OPEN_S - self._context.idle_s, self._time.now
            reopened = self._kept.reopened(trace, event, since=since, now=now)
            for other in self._open.too_many_again():
                self._complete(other, old=old)
            self._open.again(trace, reopened)
        return found

    def _complete_idle(self, *, old: bool) -> None:
        for trace in self._open.settled(self._time.now - self._context.settle_s):
            self._complete(trace, old=old)
        for trace in self._open.idle(self._time.now - self._context.idle_s):
            self._complete(trace, old=old)

    def _complete(self, trace: str, *, old: bool) -> None:
        """Publish what a trace amounts to; of one that was read again, what is not published."""
        found = self._open.pop(trace)
        assert found is not None
        try:
            made = events_of(trace, found, self._done.get(trace))
        except UNREADABLE as error:
            made = TraceEvents(others=[dead(trace, MALFORMED, repr(error)[:200], [], found.at)])
        if any(self._context.refuses(run.session, run.user, run.ended_s) for run in made.runs):
            self._context.forgo([trajectory_id(trace, run.span) for run in made.runs])
            self._drop(trace, found.events)
            return
        before = self._done.get(trace)
        late = before is not None and before.sure  # not what a killed process had begun to publish
        for run in made.runs:
            self._outputs.append(run.event)
            self._runs[run.event.id] = (trace, run)
            known = trace in self._done
            done = self._done.add(trace, run.span, run.done, self._time.now)
            done.spans_from = done.spans_from if known else found.first
        if not old or made.runs:
            self._outputs += made.others
        if late and not old:
            self._late += len(found.fresh)
        if (done_now := self._done.get(trace)) is not None:
            done_now.sure, done_now.full = True, done_now.full or found.full
            self._kept.keep(trace, found)

    def _drop(self, trace: str, events: dict[str, int]) -> None:
        """Keep nothing of a trace: `events` are overwritten, and what is published of it."""
        found, done = self._open.pop(trace), self._done.pop(trace)
        self._kept.pop(trace)
        self._context.forgo([] if found is None else [trajectory_id(trace, span) for span in found.heads()])
        self._dropped.add(trace, self._time.now)
        self._dropped.doom(events | ({} if found is None else found.events))
        if done is not None:
            last = {span: run.revision for span, run in done.runs.items()}
            self._dropped.doom_runs(trace, last, done.spans_from)
            names = [trajectory_id(trace, run).encode() for run in done.runs]
            self._outputs = [one for one in self._outputs if not any(name in one.data for name in names)]
            self._runs = {key: run for key, run in self._runs.items() if run[0] != trace}

    def commit(self) -> bool:
        """Publish, and keep the place in the stream; False: somebody else took over."""
        self._dropped.flush_if_due(self._time.now)
        self._done.forget(self._time.now)
        cursor = max(self._state.cursor, self._next - 1)
        moved = cursor != self._state.cursor
        due = self._context.clock() - self._saved_at >= _SAVE_S
        if not self._outputs and not (moved and due):
            return True
        parts = list(_parts(self._outputs))
        whole = self._context.bus.atomic and len(parts) <= 1
        if not whole and not self._publish_parts(parts):
            return False
        sure_to = None if self._context.bus.atomic else self._context.bus.last(TRAJECTORIES)
        state = AssemblyState(
            cursor=cursor,
            spans_from=min(self._open.first(self._next), self._dropped.first(self._next)),
            trajectories_from=self._done.first(self._last_trajectory + 1),
            sure_to=sure_to,
            late=self._late,
            again=[trace for trace in self._open if trace in self._done],
        )
        sequences = self._context.lease.publish(self._outputs if whole else [], state.value())
        if sequences is None:
            return False
        if whole:
            self._note(self._outputs, sequences)
        self._state, self._outputs, self._saved_at = state, [], self._context.clock()
        return True

    def _publish_parts(self, parts: list[list[BusEvent]]) -> bool:
        """Publish with the place as it was: whoever reads that again knows that not all may be published."""
        if self._state.sure_to is None:
            self._state = self._state.unsure(self._context.bus.last(TRAJECTORIES))
            if self._context.lease.publish([], self._state.value()) is None:
                return False
        for part in parts:
            sequences = self._context.lease.publish(part, self._state.value())
            if sequences is None:
                return False
            self._note(part, sequences)
        return True

    def _note(self, events: list[BusEvent], sequences: list[int]) -> None:
        """Take what was published, and where; what a session or user withdrew meanwhile goes again."""
        for event, sequence in zip(events, sequences, strict=True):
            if event.id in self._runs:
                trace, run = self._runs.pop(event.id)
                self._last_trajectory = max(self._last_trajectory, sequence)
                self._done.published(trace, sequence)
                if self._context.refuses(run.session, run.user, run.ended_s):
                    self._context.forgo([trajectory_id(trace, run.span)])
                    self._drop(trace, {})


def _reading(span: TraceSpan) -> SpanReading:
    try:
        return read_span(span)
    except UNREADABLE:
        return SpanReading()


def _parts(events: list[BusEvent]) -> Iterator[list[BusEvent]]:
    """Yield events in groups that are published at once."""
    part: list[BusEvent] = []
    size = 0
    for event in events:
        if part and size + len(event.data) > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(event)
        size += len(event.data)
    if part:
        yield part
