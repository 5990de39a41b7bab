"""The role that takes events from the bus to one sink, and takes out of it what somebody forgot.

One process at a time does. It reads on from the positions in its lease, stores a batch, and then notes how
far it is: after a failure in between the batch comes again, so a sink skips or replaces what it has. Whoever
forgets writes to RL_AUDIT, which the role follows too: a sink that is dead then removes its rows once it is
back, before it takes anything else.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.bus.protocol import FETCH_BYTES, Bus
from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.sinks.removal import Removal, removal_of
from pytest_tfgrpo.production.sinks.rows import KEPT_DAYS, TABLES, RowReader, SinkRow
from pytest_tfgrpo.production.sinks.state import SinkState, lease_name
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.storage.lease import TTL_S, Lease

AT_ONCE = 1000
"""Events of a batch."""
_REMOVE_S = 3600.0
"""How long runs of which nothing is kept may wait: each removal looks through everything."""
_AUDIT_AT_ONCE = 10_000


class Sink(Protocol):
    """A place for events; raises StoreError where it cannot take them, and is used again later."""

    name: str
    every_s: float
    """How long to collect events where there are few."""
    keeps: bool
    """Whether it has rows of people, which can be removed; otherwise it begins with what is new."""

    def write(self, rows: Sequence[SinkRow], *, again: bool) -> int:
        """Store rows for good, and return how many it refuses; `again`: it may have some of them."""
        ...

    def remove(self, removal: Removal) -> None:
        """Remove rows for good; those that are gone are fine."""
        ...

    def expire(self, before: str) -> None:
        """Remove what happened before a day, ``2025-12-08``."""
        ...

    def close(self) -> None:
        """Let go of what is held; the next use takes it again."""
        ...


class SinkFollower:
    """A role of the loop, for one thread."""

    def __init__(
        self,
        bus: Bus,
        sink: Sink,
        scrubber: LoopScrubber,
        owner: str,
        *,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`owner` names this process alone."""
        self.name = sink.name
        self._bus, self._sink, self._clock, self._wall = bus, sink, clock, wall
        self._lease = Lease(bus, lease_name(sink.name), owner, ttl_s=ttl_s, clock=clock)
        self._rows, self._dropped = RowReader(scrubber), DroppedRuns(bus, scrubber)
        self._sure: set[str] = set()
        """Streams of which the sink has exactly what the position says."""
        self._next = self._removed = float("-inf")
        self._day = ""

    def step(self) -> int:
        """Take some events, once in a while; return how many. Raises BusError and StoreError."""
        if not self._lease.hold():
            self._sure.clear()
            return 0
        if self._clock() < self._next:
            return 0
        try:
            done = self._work()
        except Exception as error:
            self._sure.clear()
            self._say(error)
            raise
        if done < AT_ONCE:
            self._next = self._clock() + self._sink.every_s
        return done

    def close(self) -> None:
        """Let another service go on."""
        self._sink.close()
        self._lease.release()

    def _work(self) -> int:
        state = SinkState.of(self._lease.state)
        if state is None:
            state = self._first()
        today = datetime.fromtimestamp(self._wall(), UTC)
        before = (today - timedelta(days=KEPT_DAYS)).isoformat()[:10]
        if self._sink.keeps:
            self._dropped.refresh()
            state = self._remove(state)
            if self._day != before:
                self._sink.expire(before)
                self._day = before
        done = 0
        for stream in TABLES:
            state, found = self._follow(state, stream, before)
            done += found
        if state.error:
            self._lease.publish([], state.well().wire())
        return done

    def _first(self) -> SinkState:
        """Return where a new sink begins: with the oldest event, or with those to come."""
        positions = {AUDIT: self._bus.last(AUDIT)}
        for stream in TABLES:
            last = self._bus.last(stream)
            positions[stream] = min(self._oldest(stream) - 1, last) if self._sink.keeps else last
        state = SinkState(positions=positions)
        self._lease.publish([], state.wire())
        return state

    def _oldest(self, stream: str) -> int:
        """Return the sequence of the oldest event there is, or of the next one."""
        return next((event.sequence for event in self._bus.replay(stream)), self._bus.last(stream) + 1)

    def _remove(self, state: SinkState) -> SinkState:
        """Remove what is to go: at once where somebody is forgotten, the rest once in a while."""
        while self._bus.last(AUDIT) > state.positions[AUDIT]:
            events = _some(self._bus, AUDIT, state.positions[AUDIT], _AUDIT_AT_ONCE)
            removal = removal_of(events)
            due = removal.of_people or self._clock() - self._removed >= _REMOVE_S
            if removal and not due:
                return state
            if removal:
                self._sink.remove(removal)
                self._removed = self._clock()
            reached = events[-1].sequence if events else self._bus.last(AUDIT)
            state = state.at(AUDIT, reached)
            if self._lease.publish([], state.wire()) is None:
                return state
        return state

    def _follow(self, state: SinkState, stream: str, before: str) -> tuple[SinkState, int]:
        position, last = state.positions[stream], self._bus.last(stream)
        if last <= position:
            return state, 0
        events = _some(self._bus, stream, position, AT_ONCE)
        reached = events[-1].sequence if events else last
        counts: Counter[str] = Counter()
        if not events or events[0].sequence > position + 1:
            counts["lost"] = max(0, min(self._oldest(stream), reached + 1) - position - 1)
        rows = []
        for event in events:
            row = self._rows.read(stream, event)
            if row is None:
                counts["refused"] += 1
            elif self._sink.keeps and row.time[:10] < before:
                counts["old"] += 1
            elif not (self._sink.keeps and row.data.get("trajectory_id") in self._dropped):
                rows.append(row)
        if not self._lease.hold():
            return state, 0
        counts["refused"] += self._sink.write(rows, again=stream not in self._sure) if rows else 0
        state = state.at(stream, reached, counts)
        if self._lease.publish([], state.wire()) is None:
            self._take_back(stream, events)
            return state, 0
        self._sure.add(stream)
        return state, len(events)

    def _take_back(self, stream: str, events: Sequence[BusEvent]) -> None:
        """Remove what was deleted while it was written here, after another process had taken the lease."""
        self._sure.clear()
        if not events or not self._sink.keeps:
            return
        left = {event.id for event in _some(self._bus, stream, events[0].sequence - 1, len(events))}
        if gone := frozenset(event.id for event in events) - left:
            self._sink.remove(Removal(events=gone))

    def _say(self, error: Exception) -> None:
        """Note for `tfgrpo loop status` why the sink waits."""
        state = SinkState.of(self._lease.state)
        if state is not None and self._lease.held:
            self._lease.publish([], state.failing(line(describe(error), 300), utc_now()).wire())


def _some(bus: Bus, stream: str, position: int, most: int) -> list[BusEvent]:
    """Return the next events after a position, up to a number or size."""
    events: list[BusEvent] = []
    size = 0
    for event in bus.replay(stream, since_sequence=position + 1):
        events.append(event)
        size += len(event.data)
        if len(events) >= most or size >= FETCH_BYTES:
            break
    return events
