"""Tickets: a rollout's place in the queue for the budget, and a time limit that pauses while it waits.

It waits for room in the budget, or for one of the calls that an endpoint takes at once: neither is its doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Ticket:
    """One rollout as the budget sees it; used on the event loop only."""

    def __init__(self, place: int = 0) -> None:
        """`place` is when it was begun: lower ones go first."""
        self.place = place
        self.waited_s = 0.0
        """How long it has waited."""
        self._waiting = 0
        self._since = 0.0
        self._timers: set[PausableTimer] = set()

    def timer(self, seconds: float, ring: Callable[[], None]) -> PausableTimer:
        """Return an alarm that calls `ring` after `seconds`, waiting not counted."""
        timer = PausableTimer(seconds, ring, self._timers)
        if not self._waiting:
            timer.go()
        return timer

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the time limit stand still; calls side by side may wait at once."""
        clock = asyncio.get_running_loop().time
        self._waiting += 1
        if self._waiting == 1:
            self._since = clock()
            for timer in self._timers:
                timer.stand()
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.waited_s += clock() - self._since
                for timer in self._timers:
                    timer.go()


class PausableTimer:
    """Rings once, when its time has run down."""

    def __init__(self, seconds: float, ring: Callable[[], None], others: set[PausableTimer]) -> None:
        self._left_s = seconds
        self._ring = ring
        self._others = others
        self._others.add(self)
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def go(self) -> None:
        """Let the time run."""
        self._handle = self._loop.call_later(max(0.0, self._left_s), self._end)

    def stand(self) -> None:
        """Let the time stand still."""
        if self._handle is not None:
            self._left_s = self._handle.when() - self._loop.time()
            self._handle.cancel()

    def cancel(self) -> None:
        """Never ring."""
        self._others.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _end(self) -> None:
        self._others.discard(self)
        self._ring()


_TICKET: ContextVar[Ticket | None] = ContextVar("ticket", default=None)


def take_ticket(place: int) -> Ticket:
    """Begin a turn: calls of this task, and of tasks that it starts from now on, are made in it."""
    ticket = Ticket(place)
    _TICKET.set(ticket)
    return ticket


def current_ticket() -> Ticket:
    """Return the turn of this task; without one, a turn that goes before all others."""
    return _TICKET.get() or Ticket()
