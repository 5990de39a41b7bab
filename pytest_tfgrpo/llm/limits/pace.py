"""Pace: where a client's waiting and chance come from."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.retry import backoff_s

BACKOFF_S = 0.5
BACKOFF_MOST_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Where waiting and chance come from."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    """Returns a number in [0, 1)."""
    clock: Callable[[], float] = time.perf_counter

    def backoff_s(self, attempt: int) -> float:
        """Return how long to wait after failed `attempt` (0, 1, ...): exponential, with full jitter."""
        return self.chance() * backoff_s(attempt, BACKOFF_S, BACKOFF_MOST_S)
