"""The way of an event from an agent's thread into the live store: a queue, and one thread that writes.

An agent pays for a call of ``deque.append``. Whatever fails behind it is the guard's affair (decision 23),
and never the agent's.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event, RLock, Thread, current_thread

from pytest_tfgrpo.core.errors import StoreError, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.python.wakeup import WakeUp
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.records import GateState, LiveEvent, LiveRules
from pytest_tfgrpo.production.live.store.store import LiveStore
from pytest_tfgrpo.production.live.store.store_file import while_alive
from pytest_tfgrpo.production.live.store.store_writing import TOUCHED_S
from pytest_tfgrpo.retry import backoff_s

CAPACITY = 10_000
"""Events that wait; a run that lost one to a full queue fails as ``events_lost``."""
BATCH = 1000
"""Most events of one transaction."""
LINGER_S = 0.02
"""How long the first event of a batch waits for others: they share one commit."""
POLL_S = 1.0
"""How often an idle collector looks for runs that time out, another process's selector, and a reset."""
RETRY_S, LONGEST_RETRY_S = 0.05, 1.0
"""Wait after the first failure, doubled by each further one."""
JUMP_S = 60.0
"""By how much the wall clock must outrun the steady one to count as set anew."""
_ERROR_CHARS = 300


@dataclass(frozen=True, slots=True)
class _LostEvent:
    """Stands in the queue for all events of a run that it had no room for since."""

    event: LiveEvent


class Collector:
    """Writes what agents report, fails orphaned runs, and runs the updates that are due.

    Any thread may call `put`, also within itself, as garbage collection may end a span or a run anywhere.
    Held, it collects nothing until a reset in the store.
    """

    def __init__(
        self,
        store: LiveStore,
        rules: LiveRules,
        *,
        interval: int = 8,
        limit: int = 64,
        outcome_wait_s: float = 0.0,
        timeout_s: float = 3600.0,
        learned: Callable[[int, Json], None] | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the thread that writes.

        An update is due after `interval` runs, and uses at most `limit`; runs without an event for
        `timeout_s` fail; `learned` gets number and document of each new selector, on this thread first.
        """
        self._store, self._rules = store, rules
        self._interval, self._limit, self._outcome_wait_s = interval, limit, outcome_wait_s
        self._timeout_s, self._learned, self._capacity = timeout_s, learned, capacity
        self._clock, self._steady = clock, steady
        self._offset, self._skew = clock() - steady(), 0.0
        self._selector, self._gate, self._unsaved = 0, store.gate(), False
        self._forked = while_alive(self._after_fork)
        self._prepare()
        self._refresh()
        self._start()
        os.register_at_fork(after_in_child=self._forked)

    def _prepare(self) -> None:
        self._queue: deque[LiveEvent | _LostEvent | Event] = deque()
        self._batch: list[LiveEvent] = []
        self._lost: list[LiveEvent] = []
        self._flushed: list[Event] = []
        self._marked: set[tuple[str, str]] = set()
        self._mark_lock = RLock()
        self._wake, self._hurry = WakeUp(), WakeUp()
        self._held = self._asleep = self._closing = self._more = False
        self._dropped = self._failures = 0
        self._room = self._capacity

    def _start(self) -> None:
        self._thread: Thread | None = Thread(target=self._work, name="tfgrpo-live", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        if (processes := sys.modules.get("multiprocessing.util")) is not None:  # its children skip atexit
            processes.Finalize(None, while_alive(self.close), exitpriority=1)

    @property
    def gate(self) -> GateState:
        """What the guard says, also where the store cannot be read."""
        return self._gate

    def put(self, event: LiveEvent) -> bool:
        """Queue an event; return False if it is dropped. Never waits, and never raises."""
        if self._held or self._closing:
            self._dropped += 1
            return False
        if len(self._queue) >= self._room:
            return self._crowded(event)
        self._append(event)
        return True

    def _append(self, event: LiveEvent) -> None:
        self._queue.append(event)
        if self._asleep:
            self._asleep = False  # one is enough
            self._wake.set()

    def _crowded(self, event: LiveEvent) -> bool:
        """Put a mark into the queue, after what is there of the run and before what follows."""
        with self._mark_lock:
            if not self._room:  # the first event in a child process
                self._room = self._capacity
                self._start()
            if len(self._queue) < self._room:
                self._append(event)
                return True
            key = (event.run, event.owner)
            if key not in self._marked:
                self._marked.add(key)
                light = {name: value for name, value in event.data.items() if name not in ("prompt", "reply")}
                self._queue.append(_LostEvent(event._replace(data=light)))
        return False

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Return whether all events queued so far are in the store, or dropped, within `timeout_s`.

        The update that is due with them has been tried then. The thread that writes does not wait for itself.
        """
        if self._thread is None or not self._thread.is_alive():
            return not self._queue
        done = Event()
        self._queue.append(done)
        self._hurry.set()
        self._wake.set()
        return self._thread is not current_thread() and done.wait(timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what is queued, and end the thread; the store stays open."""
        self._closing = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(timeout_s)
        atexit.unregister(self.close)

    def _after_fork(self) -> None:
        """Start anew in a child process, at its first event: what is queued is the parent's to write."""
        if not self._closing:
            self._prepare()
            self._held = self._gate.state == "hold"
            self._thread, self._room = None, 0

    # the thread that writes

    def _work(self) -> None:
        while not self._finished():
            self._wait()
            self._drain()
            if not self._held:
                self._cycle()
            if self._held:
                self._look_for_reset()

    def _finished(self) -> bool:
        """Return whether to end: all is written, or what is left cannot be."""
        left = self._queue or self._batch or self._lost
        return self._closing and (not left or self._held or self._failures > 1)

    def _wait(self) -> None:
        """Wait for an event, then a moment for others; after a failure for a while."""
        if self._failures and not self._held:
            self._hurry.wait(backoff_s(self._failures - 1, RETRY_S, LONGEST_RETRY_S))
        elif not self._closing and not self._more:
            self._asleep = True
            if not self._queue:
                self._wake.wait(POLL_S)
            self._asleep = False
            if self._queue:
                self._hurry.wait(LINGER_S)
        self._wake.clear()
        if not self._closing:
            self._hurry.clear()

    def _drain(self) -> None:
        """Take events from the queue up to a batch; what could not be written before comes first."""
        queue = self._queue
        while queue and len(self._batch) < BATCH:
            item = queue.popleft()
            if isinstance(item, LiveEvent):
                self._batch.append(item)
            elif isinstance(item, Event):
                self._flushed.append(item)
            else:
                self._lost.append(item.event)
                with self._mark_lock:
                    self._marked.discard((item.event.run, item.event.owner))

    def _cycle(self) -> None:
        now, worked = self._clock(), bool(self._batch or self._lost)
        try:
            errors = self._write(now)
            self._store.expire(self._oldest(now), rules=self._rules, now=now)
            self._more = self._update(now)
            self._refresh()
        except Exception as error:  # noqa: BLE001 - the guard counts whatever fails
            errors = (describe(error),)
        if errors:
            self._failures += 1
            text = line(errors[0], _ERROR_CHARS)
            self._change_gate(lambda state: self._rules.failed(state, text, now))
        else:
            self._failures = 0
            if self._unsaved or (self._gate.streak and (worked or self._more)):  # nothing done shows nothing
                self._change_gate(self._rules.succeeded if worked or self._more else lambda state: state)
        if not self._batch and not self._lost:
            self._answer()

    def _write(self, now: float) -> tuple[str, ...]:
        """Write the batch; return what reward inference raised."""
        if not self._batch and not self._lost:
            return ()
        report = self._store.write(self._batch, rules=self._rules, now=now, lost=self._lost)
        self._batch, self._lost = [], []
        self._take_gate(report.gate)
        return report.errors

    def _answer(self) -> None:
        """Let those go on who wait for what is written, or dropped, now."""
        for done in self._flushed:
            done.set()
        self._flushed = []

    def _update(self, now: float) -> bool:
        """Run the update that is due; return whether there was one, and another may be due."""
        store, wait_s, due = self._store, self._outcome_wait_s, self._interval
        if store.due(outcome_wait_s=wait_s, now=now, enough=due) < due:
            return False
        update = store.update(self._rules.update, limit=self._limit, outcome_wait_s=wait_s, now=now, due=due)
        return update is not None

    def _oldest(self, now: float) -> float:
        """Return since when a run must have had an event.

        A wall clock that is set forward ages no run.
        """
        offset = now - self._steady()
        if offset - self._offset > JUMP_S:
            self._skew += offset - self._offset
        self._offset = offset
        return now - self._timeout_s - TOUCHED_S - self._skew

    def _refresh(self) -> None:
        """Take over what other processes, or the update just made, have learned, and the guard's state."""
        number = self._store.selector_number()
        if number != self._selector:
            found = self._store.selector(number)
            if found is not None and self._learned is not None:
                self._learned(*found)
            self._selector = number
        self._take_gate(self._store.gate())

    def _change_gate(self, change: Callable[[GateState], GateState]) -> None:
        """Change the guard's memory in the store; where that fails, in memory until it can be stored."""
        unsaved, known = self._unsaved, self._gate
        try:
            state = self._store.change_gate(
                lambda stored: change(_failures_of(known, stored) if unsaved else stored), now=self._clock()
            )
            self._unsaved = False
        except StoreError:
            state = change(known)
            self._unsaved = True
        self._gate = state
        self._hold_or_go_on()

    def _take_gate(self, state: GateState) -> None:
        """Take over the guard's memory from the store, but for failures that could not be stored."""
        self._gate = _failures_of(self._gate, state) if self._unsaved and state.state == "pass" else state
        self._hold_or_go_on()

    def _hold_or_go_on(self) -> None:
        self._held = self._gate.state == "hold"
        if self._held:
            self._failures, self._more = 0, False
            while self._batch or self._lost or self._queue:
                self._dropped += len(self._batch) + len(self._lost)
                self._batch, self._lost = [], []
                self._drain()
            self._answer()

    def _look_for_reset(self) -> None:
        """Close open runs, store a hold that could not be stored before, and collect again after a reset."""
        now = self._clock()
        with suppress(StoreError):
            if self._unsaved:
                self._change_gate(lambda state: state)
            if not self._unsaved:
                dropped, self._dropped = self._dropped, 0
                self._store.cancel_open(now, dropped=dropped)
                self._refresh()
        self._hold_or_go_on()


def _failures_of(known: GateState, stored: GateState) -> GateState:
    """Return the guard's memory in the store with the failures that this process knows of."""
    return replace(
        stored,
        state=known.state,
        streak=known.streak,
        reason=known.reason,
        last_error=known.last_error,
        since=known.since,
    )
