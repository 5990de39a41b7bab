"""What time it is for the runs of agents, whatever somebody does to the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from pytest_tfgrpo.production.live.store.store_writing import TOUCHED_S

JUMP_S = 60.0
"""By how much the wall clock must outrun the steady one to count as set anew."""


class RunClock:
    """Says when a run has waited too long for its next event."""

    def __init__(
        self,
        timeout_s: float = 3600.0,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """A run without an event for `timeout_s` has timed out."""
        self._timeout_s, self._steady = timeout_s, steady
        self.now = wall
        self._offset, self._skew = wall() - steady(), 0.0

    def oldest(self, now: float) -> float:
        """Return since when a run must have had an event.

        A wall clock that is set forward ages no run.
        """
        offset = now - self._steady()
        if offset - self._offset > JUMP_S:
            self._skew += offset - self._offset
        self._offset = offset
        return now - self._timeout_s - TOUCHED_S - self._skew
