"""One round of the thread that writes: events into the live store, orphaned runs, the update that is due."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from pytest_tfgrpo.core.errors import StoreError, describe
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.intake.event_buffer import LiveBatch
from pytest_tfgrpo.production.live.intake.gate_memory import GateMemory
from pytest_tfgrpo.production.live.intake.run_clock import RunClock
from pytest_tfgrpo.production.live.records import LiveRules
from pytest_tfgrpo.production.live.store.store import LiveStore

_ERROR_CHARS = 300


class StoreCycle:
    """Rounds on a store; whatever fails in one is the guard's affair (decision 23)."""

    def __init__(
        self,
        store: LiveStore,
        rules: LiveRules,
        clock: RunClock,
        *,
        interval: int,
        limit: int,
        outcome_wait_s: float,
        learned: Callable[[int, Json], None] | None,
    ) -> None:
        """See the collector."""
        self._store, self._rules, self._clock = store, rules, clock
        self._interval, self._limit, self._outcome_wait_s = interval, limit, outcome_wait_s
        self._learned = learned
        self._selector = 0
        self.gate = GateMemory(store)
        self.failures = 0
        """Rounds in a row that failed."""
        self.more = False
        """Whether another update may be due."""

    def run(self, batch: LiveBatch) -> None:
        """Write a batch, fail runs that timed out, update, and report to the guard how it went."""
        now, worked = self._clock.now(), bool(batch)
        try:
            errors = self._write(batch, now)
            self._store.expire(self._clock.oldest(now), rules=self._rules, now=now)
            self.more = self._update(now)
            self.refresh()
        except Exception as error:  # noqa: BLE001 - the guard counts whatever fails
            errors = (describe(error),)
        self.more = self.more and not self.gate.held
        if errors:
            self.failures += 1
            text = line(errors[0], _ERROR_CHARS)
            self.gate.change(lambda state: self._rules.failed(state, text, now), self._clock.now())
        else:
            self.failures = 0
            done = worked or self.more
            if self.gate.unsaved or (self.gate.state.streak and done):  # nothing done shows nothing
                change = self._rules.succeeded if done else lambda state: state
                self.gate.change(change, self._clock.now())

    def _write(self, batch: LiveBatch, now: float) -> tuple[str, ...]:
        """Write the batch; return what reward inference raised."""
        if not batch:
            return ()
        report = self._store.write(batch.events, rules=self._rules, now=now, lost=batch.lost)
        batch.clear()
        self.gate.take(report.gate)
        return report.errors

    def _update(self, now: float) -> bool:
        """Run the update that is due; return whether there was one, and another may be due."""
        store, wait_s, due = self._store, self._outcome_wait_s, self._interval
        if store.due(outcome_wait_s=wait_s, now=now, enough=due) < due:
            return False
        update = store.update(self._rules.update, limit=self._limit, outcome_wait_s=wait_s, now=now, due=due)
        return update is not None

    def refresh(self) -> None:
        """Take over what other processes, or the update just made, have learned, and the guard's state."""
        number = self._store.selector_number()
        if number != self._selector:
            found = self._store.selector(number)
            if found is not None and self._learned is not None:
                self._learned(*found)
            self._selector = number
        self.gate.take(self._store.gate())

    def look_for_reset(self, dropped: int) -> bool:
        """Close open runs, and store a hold that could not be stored before; a reset ends the hold.

        Return whether the store knows of the events that were `dropped`.
        """
        now, told = self._clock.now(), False
        with suppress(StoreError):
            if self.gate.unsaved:
                self.gate.change(lambda state: state, now)
            if not self.gate.unsaved:
                self._store.cancel_open(now, dropped=dropped)
                told = True
                self.refresh()
        return told
