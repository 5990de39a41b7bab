"""The guard's memory as one process knows it, also while the store cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.records import GateState
from pytest_tfgrpo.production.live.store.store import LiveStore


class GateMemory:
    """What the guard says; a change that cannot be stored is kept here until it can."""

    def __init__(self, store: LiveStore) -> None:
        """Read it from the store; raises StoreError."""
        self._store = store
        self.state = store.gate()
        self.unsaved = False

    @property
    def held(self) -> bool:
        """Whether nothing is collected."""
        return self.state.state == "hold"

    def change(self, change: Callable[[GateState], GateState], now: float) -> None:
        """Change it in the store; where that fails, here."""
        unsaved, known = self.unsaved, self.state
        try:
            self.state = self._store.change_gate(
                lambda stored: change(_failures_of(known, stored) if unsaved else stored), now=now
            )
            self.unsaved = False
        except StoreError:
            self.state = change(known)
            self.unsaved = True

    def take(self, state: GateState) -> None:
        """Take it over from the store, but for failures that could not be stored."""
        keeps = self.unsaved and state.state == "pass"
        self.state = _failures_of(self.state, state) if keeps else state


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
