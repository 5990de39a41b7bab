"""The history of rewards, kept in the view and on the bus.

RL_REWARDS alone is not enough: it lets go of rewards after 30 days, and a history holds the last 1,000 scores
of a component however old they are. What is kept on the bus is the same for every machine. It says which
audit event of forgetting was the newest: what was built before a later one names trajectories that are gone.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES, Bus
from pytest_tfgrpo.production.rewards.history import RewardHistory
from pytest_tfgrpo.production.view.view import HISTORY, LoopView
from pytest_tfgrpo.storage.event_store import STATE, change

_PAGE = 1000
_SAVE_AFTER, _SAVE_S = 5000, 86400.0
"""Rewards, and seconds, after which the history is kept: long before RL_REWARDS lets go of one."""


class KeptHistory:
    """The history of an evaluator, kept so that the next start needs few rewards, and none that are gone."""

    def __init__(self, bus: Bus, view: LoopView, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Know no reward yet; `clock` is in seconds."""
        self._bus, self._view, self._clock = bus, view, clock
        self.history = RewardHistory()
        self._saved = 0
        """Ordinal of the newest reward in the history that is kept."""
        self._save_at = float("-inf")

    def load(self, ordinal: int) -> None:
        """Begin with the rewards up to one of them; raises BusError."""
        self.history, self._saved = load_history(self._bus, self._view, ordinal)
        self._save_at = float("-inf")

    def save_if_due(self, ordinal: int, generation: int) -> None:
        """Keep it after many rewards, or a day; raises BusError."""
        if self._clock() >= self._save_at or ordinal - self._saved >= _SAVE_AFTER:
            self.save(ordinal, generation)

    def save(self, ordinal: int, generation: int) -> None:
        """Keep it up to a reward, unless it has to be built anew; raises BusError."""
        if generation >= 0 and ordinal > self._saved:
            save_history(self._bus, self._view, self.history, ordinal, generation)
            self._saved = ordinal
            self._save_at = self._clock() + _SAVE_S


def load_history(bus: Bus, view: LoopView, ordinal: int) -> tuple[RewardHistory, int]:
    """Return the history of the rewards up to one of them, and up to which it was kept; raises BusError.

    What follows is read from the view, which has RL_REWARDS.
    """
    history, since = RewardHistory(), 0
    forgets, on_bus = view.forgets, _on_bus(bus)
    if on_bus is not None and on_bus.get("forgets", 0) < forgets:
        forget_history(bus)  # somebody kept it while another process forgot
    found = [one for one in (json.loads(view.meta(HISTORY) or "null"), on_bus) if one is not None]
    kept = [one for one in found if one["ordinal"] <= ordinal and one.get("forgets", 0) >= forgets]
    if kept:
        newest = max(kept, key=lambda one: int(one["ordinal"]))
        history.restore(newest)
        since = newest["ordinal"]
    saved = since
    query = """SELECT ordinal, slim FROM rewards WHERE own AND ordinal > ? AND ordinal <= ?
        ORDER BY ordinal LIMIT ?"""
    while page := view.rows(query, (since, ordinal, _PAGE)):
        history.rebuild(json.loads(slim) for _, slim in page)
        since = page[-1][0]
    return history, saved


def save_history(bus: Bus, view: LoopView, history: RewardHistory, ordinal: int, generation: int) -> None:
    """Keep the history up to a reward, unless something was taken out of the view since; raises BusError.

    One that is too large for a message, with dozens of components, is kept in the view alone.
    """
    with view.transaction():
        if view.generation != generation:
            return
        text = json.dumps({**history.dump(), "ordinal": ordinal, "forgets": view.forgets})
        view.set_meta(HISTORY, text)
    value = zlib.compress(text.encode())
    if len(value) <= MAX_EVENT_BYTES:
        table = bus.table(STATE)
        try:
            table.put(HISTORY, value, table.get(HISTORY)[1])
        except RevisionConflict:
            return  # another process has just kept its own


def forget_history(bus: Bus) -> None:
    """Remove what is kept on the bus: it names trajectories. Raises BusError."""
    change(bus.table(STATE), HISTORY, lambda _: None)


def _on_bus(bus: Bus) -> Json:
    value, _ = bus.table(STATE).get(HISTORY)
    return None if value is None else json.loads(zlib.decompress(value))
