"""A model server with a hidden limit, and callers held back by a `Concurrency`, on a clock of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from pytest_tfgrpo.llm.limits.concurrency import Concurrency, SlotPlace

REFUSAL_S = 0.002
"""Time until a refusal arrives."""
BACKOFF_S = 0.5
"""A refused call is made again after a random part of this."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What came of it."""

    rate: float
    """Calls answered a second."""
    refused: float
    """Share of the calls of the second half that were refused."""
    limits: list[int]
    """After each end of a call."""


def fixed(number: int) -> Concurrency:
    """Return a concurrency that never changes."""

    class Fixed(Concurrency):
        def end(self, place: SlotPlace, outcome: str, **_: float) -> None:
            self.in_flight -= 1
            self.seen.calls += 1
            self.seen.refused += outcome == "refused"

    return Fixed(number, number)


def simulate(
    concurrency: Concurrency,
    limit: Callable[[float], int],
    *,
    calls: int,
    mode: Literal["refuse", "queue"] = "refuse",
    latency_s: float = 0.1,
    seed: int = 0,
    check: Callable[[Concurrency], None] = lambda _: None,
) -> Simulated:
    """Make `calls` against a server that takes `limit(now)` at once, and refuses or slows down beyond it."""
    chance = random.Random(seed)
    now, inside, answered, number, waiting = 0.0, 0, 0, 0, calls
    made = refused = 0
    limits: list[int] = []
    events: list[tuple[float, int, str, SlotPlace | None, float]] = []
    while answered < calls:
        while waiting and concurrency.is_free(now):
            waiting, number, place = waiting - 1, number + 1, concurrency.begin()
            if mode == "refuse" and inside >= limit(now):
                heappush(events, (now + REFUSAL_S, number, "refused", place, now))
                continue
            inside += 1
            crowded = max(1.0, inside / limit(now)) if mode == "queue" else 1.0
            ends = now + crowded * latency_s * chance.lognormvariate(0, 0.4)
            heappush(events, (ends, number, "ok", place, now))
        if not events:
            now = concurrency.held_until
            continue
        now, _, kind, ended, began = heappop(events)
        if ended is None:
            waiting += 1
            continue
        if kind == "ok":
            inside, answered = inside - 1, answered + 1
            concurrency.end(ended, "ok", latency_s=now - began, now=now)
        else:
            number += 1
            concurrency.end(ended, "refused", now=now)
            heappush(events, (now + chance.random() * BACKOFF_S, number, "again", None, now))
        if answered > calls // 2:
            made, refused = made + 1, refused + (kind != "ok")
        limits.append(concurrency.limit)
        check(concurrency)
    return Simulated(rate=answered / now, refused=refused / made, limits=limits)
