"""The way of an event from an agent's thread into the live store: a queue, and one thread that writes.

An agent pays for a call of ``deque.append``. Whatever fails behind it is the guard's affair (decision 23),
and never the agent's.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from threading import Thread, current_thread

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.intake.event_buffer import EventBuffer, LiveBatch
from pytest_tfgrpo.production.live.intake.run_clock import RunClock
from pytest_tfgrpo.production.live.intake.store_cycle import StoreCycle
from pytest_tfgrpo.production.live.records import GateState, LiveEvent, LiveRules
from pytest_tfgrpo.production.live.store.store import LiveStore
from pytest_tfgrpo.production.live.store.store_file import while_alive
from pytest_tfgrpo.retry import backoff_s

CAPACITY = 10_000
"""Events that wait; a run that lost one to a full queue fails as ``events_lost``."""
RETRY_S, LONGEST_RETRY_S = 0.05, 1.0
"""Wait after the first failure, doubled by each further one."""


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
        clock: RunClock | None = None,
        learned: Callable[[int, Json], None] | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        """Start the thread that writes.

        An update is due after `interval` runs, and uses at most `limit`; runs fail that `clock` has timed
        out; `learned` gets number and document of each new selector, on this thread first.
        """
        self._capacity = capacity
        self._buffer, self._batch = EventBuffer(capacity), LiveBatch()
        self._cycle = StoreCycle(
            store,
            rules,
            clock or RunClock(),
            interval=interval,
            limit=limit,
            outcome_wait_s=outcome_wait_s,
            learned=learned,
        )
        self._thread: Thread | None = None
        self._forked = while_alive(self._after_fork)
        self._cycle.refresh()
        self._hold_or_go_on()
        self._start()
        os.register_at_fork(after_in_child=self._forked)

    def _start(self) -> None:
        self._thread = Thread(target=self._work, name="tfgrpo-live", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        if (processes := sys.modules.get("multiprocessing.util")) is not None:  # its children skip atexit
            processes.Finalize(None, while_alive(self.close), exitpriority=1)

    @property
    def gate(self) -> GateState:
        """What the guard says, also where the store cannot be read."""
        return self._cycle.gate.state

    def put(self, event: LiveEvent) -> bool:
        """Queue an event; return False if it is dropped. Never waits, and never raises."""
        return self._buffer.put(event)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Return whether all events queued so far are in the store, or dropped, within `timeout_s`.

        The update that is due with them has been tried then. The thread that writes does not wait for itself.
        """
        if self._thread is None or not self._thread.is_alive():
            return not self._buffer
        done = self._buffer.flush()
        return self._thread is not current_thread() and done.wait(timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what is queued, and end the thread; the store stays open."""
        self._buffer.close()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(timeout_s)
        atexit.unregister(self.close)

    def _after_fork(self) -> None:
        """Start anew in a child process, at its first event: what is queued is the parent's to write."""
        if not self._buffer.closing:
            self._buffer, self._batch = EventBuffer(self._capacity, begin=self._start), LiveBatch()
            self._buffer.held = self._cycle.gate.held
            self._cycle.failures, self._cycle.more = 0, False
            self._thread = None

    # the thread that writes

    def _work(self) -> None:
        while not self._finished():
            self._wait()
            self._buffer.drain(self._batch)
            if not self._buffer.held:
                self._cycle.run(self._batch)
                self._hold_or_go_on()
                if not self._batch:
                    self._batch.answer()
            if self._buffer.held:
                self._look_for_reset()

    def _finished(self) -> bool:
        """Return whether to end: all is written, or what is left cannot be."""
        left = self._buffer or self._batch
        return self._buffer.closing and (not left or self._buffer.held or self._cycle.failures > 1)

    def _wait(self) -> None:
        """Wait for an event, then a moment for others; after a failure for a while."""
        buffer, cycle = self._buffer, self._cycle
        if cycle.failures and not buffer.held:
            buffer.pause(backoff_s(cycle.failures - 1, RETRY_S, LONGEST_RETRY_S))
        elif not buffer.closing and not cycle.more:
            buffer.wait()
        buffer.rearm()

    def _hold_or_go_on(self) -> None:
        self._buffer.held = self._cycle.gate.held
        if self._buffer.held:
            self._cycle.failures, self._cycle.more = 0, False
            self._buffer.drop(self._batch)

    def _look_for_reset(self) -> None:
        """Collect again after a reset; the store counts what was dropped until then."""
        dropped, self._buffer.dropped = self._buffer.dropped, 0
        if not self._cycle.look_for_reset(dropped):
            self._buffer.dropped += dropped
        self._hold_or_go_on()
