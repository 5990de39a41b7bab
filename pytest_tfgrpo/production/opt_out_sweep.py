"""Overwrites what came before it was known that it belongs to somebody of whom nothing is kept.

Feedback may come before the span that says whose it is, and dead letters name a session alone. Whenever the
door did not take something, a row of the table ``state`` requests a sweep; any process does it.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.trajectories import trajectory_event_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT, DAY_S, DEAD, SPANS_SUBJECT
from pytest_tfgrpo.production.door.dropped_runs import SWEPT, DroppedRuns
from pytest_tfgrpo.production.door.named_in import NamedIn
from pytest_tfgrpo.production.door.opt_outs import LEFT, SWEEP, OptOuts, noted_at
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.span_events import encode_opt_out, event_id
from pytest_tfgrpo.production.view.view import FEEDBACKS, REWARDS, TRAJECTORIES, LoopView, event_at
from pytest_tfgrpo.storage.event_store import STATE, BusEvent

EVERY_S = 60.0
"""Between two sweeps of a process."""
_LOOK_S = 1.0
_KEPT_MS = int(31 * DAY_S * 1000)
"""How long it is known whose a session is, which is longer than a stream keeps anything of it."""
_AT_ONCE = 5000
"""Rewards of one such event."""
_DOING = b"doing"
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CLAIMS = (("feedback", FEEDBACKS), ("rewards", REWARDS))

_Found = defaultdict[str, dict[str, int]]
"""By stream, the sequences of events by id."""


class OptOutSweep:
    """A role of the loop: sweeps when that is due."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        scrubber: LoopScrubber,
        opt_outs: OptOuts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus, self._view, self._opt_outs, self._clock = bus, view, opt_outs, clock
        self._scrubber = scrubber
        self._names = NamedIn(scrubber)
        self._runs = DroppedRuns(bus, scrubber)
        self._table = bus.table(STATE)
        self._next = float("-inf")

    def step(self) -> int:
        """Sweep if that is due; return how many events were overwritten. Raises BusError."""
        if self._clock() < self._next:
            return 0
        self._next = self._clock() + _LOOK_S
        value, revision = self._table.get(SWEEP)
        if value is None:
            return 0
        with suppress(RevisionConflict):  # somebody else does, or it is due once more
            revision = self._table.put(SWEEP, _DOING, revision)
            self._next = self._clock() + EVERY_S
            found = self._sweep()
            self._table.remove(SWEEP, revision)
            return found
        return 0

    def close(self) -> None:
        """Let go of nothing: a sweep that was not done is still due."""

    def _sweep(self) -> int:
        self._prune()
        self._opt_outs.refresh()
        self._runs.refresh()
        self._view.catch_up(self._bus)
        self._share()
        found: _Found = defaultdict(dict)
        ids = self._take_trajectories(found)
        self._take_claims(found, ids)
        for event in self._bus.replay(DEAD):
            if self._is_gone(event):
                found[DEAD][event.id] = event.sequence
        count = sum(self._bus.delete(stream, list(events)) for stream, events in found.items())
        if rewards := sorted(found.get(REWARDS, ())):
            self._bus.publish([_swept(rewards[n : n + _AT_ONCE]) for n in range(0, len(rewards), _AT_ONCE)])
        if found or ids:
            gone = {stream: list(events.values()) for stream, events in found.items()}
            self._view.forget("user", "", ids, gone)
        return count

    def _prune(self) -> None:
        """Take out the rows of sessions of which the streams have nothing any more."""
        oldest = utc_now(ago_ms=_KEPT_MS)
        for key, (value, revision) in self._table.list(LEFT).items():
            if noted_at(value) < oldest:
                with suppress(RevisionConflict):
                    self._table.remove(key, revision)

    def _share(self) -> None:
        """Note the sessions in which somebody else is."""
        query = "SELECT DISTINCT session, user_ref FROM trajectories WHERE user_ref IS NOT NULL"
        for session, user in self._view.rows(query) if self._opt_outs.has_left else ():
            self._opt_outs.saw((session,), (user,), float("inf"))

    def _take_trajectories(self, found: _Found) -> list[str]:
        """Find trajectories without a user; those of a trace go by its opting out. Return the others' ids."""
        ids, gone, traces = [], [], set()
        query = "SELECT id, seq, at, session, trace_id FROM trajectories WHERE user_ref IS NULL"
        for key, sequence, at, session, trace in self._view.rows(query) if self._opt_outs.has_left else ():
            if at < self._since(session):
                continue
            gone.append(str(key))
            if trace:
                traces.add(str(trace))
            else:
                ids.append(str(key))
                found[TRAJECTORIES][trajectory_event_id(key)] = sequence
        data = [encode_opt_out(trace) for trace in sorted(traces)]
        now = utc_now()
        self._bus.publish(
            [BusEvent(id=event_id(one), subject=SPANS_SUBJECT, time=now, data=one) for one in data]
        )
        self._runs.forgo(gone)
        self._runs.refresh()
        return ids

    def _take_claims(self, found: _Found, ids: list[str]) -> None:
        """Find what is said of trajectories that go, and of those that never came."""
        for table, stream in _CLAIMS:
            for key, sequence, at, of, session in self._orphans(table):
                late = bool(session) and at >= self._since(session)
                if of in self._runs or (late and not self._names_somebody(stream, sequence)):
                    found[stream][key] = sequence
            for one in ids:
                query = f"SELECT event_id, seq FROM {table} WHERE trajectory_id = ?"
                found[stream].update(self._view.rows(query, (one,)))

    def _orphans(self, table: str) -> Iterator[tuple[Json, ...]]:
        query = f"SELECT event_id, seq, at, trajectory_id, session FROM {table} WHERE orphan"
        yield from self._view.rows(query)

    def _names_somebody(self, stream: str, sequence: int) -> bool:
        event = event_at(self._bus, stream, sequence)
        return event is not None and bool(self._names.users(event.data))

    def _is_gone(self, letter: BusEvent) -> bool:
        """Return whether a dead letter is of a run or session of which nothing is kept."""
        if any(one.decode() in self._runs for one in _UUID.findall(letter.data)):
            return True
        sessions = self._names.sessions(letter.data) if self._opt_outs.has_left else ()
        late = any(letter.arrived >= self._opt_outs.since(session) for session in sessions)
        return late and not self._names.users(letter.data)

    def _since(self, session: str) -> float:
        return self._opt_outs.since(self._scrubber.session_ref(session))


def _swept(events: list[str]) -> BusEvent:
    """Return the word to those who keep copies that events are gone."""
    value = {"action": SWEPT, "what": "reward", "refs": events}
    data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return BusEvent(id=derived_id(SWEPT, *events), subject=AUDIT_SUBJECT, time=utc_now(), data=data)
