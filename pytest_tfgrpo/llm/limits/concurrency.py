"""Concurrency that adapts: finds how many calls an endpoint takes at once, from its refusals and its latency.

It has no clock and does no waiting of its own, so that a simulation can drive it. Growth doubles until the
first refusal. A refusal takes away as many places as there were refusals, at most half for the calls that
were under way together; one that comes soon after another takes away a fifth. After that one more place is
tried every so many answers, less often with each try that fails, so that of settled calls 0.5 % are refused;
the steps double while they succeed.
"""

from __future__ import annotations

from typing import Final, Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.retry import backoff_s

AUTO: Final = "auto"
"""Value of the setting and of an endpoint's field ``concurrency``."""
UNSEEN = 64
"""Rollouts in flight of an actor whose calls another program makes, where the setting is `AUTO`."""
BATCHED = 10_000
"""Calls of a model in flight at least, or rollouts that make them, where batches take them all."""
START, MOST = 16, 512
"""Calls in flight at first, and at most."""
PROBE_CALLS, PROBE_CALLS_FOUND, PROBE_CALLS_MOST = 8, 32, 200
"""Answers at a level that holds before one more place is tried, at least; a try that fails doubles it. The
second figure is for a level that was found by growing past it, which is known well."""
GROWTH = 4
"""Once a limit is known, the level grows by its part of this at most: a larger step is refused as often."""
STORM = 0.8
"""What is left of a level that is refused soon after another, or whose latency has doubled."""
RISE = 2.0
"""Latency against that of the same level before, from which it counts as rising."""
WORTH = 0.4
"""Share of the added places that must show as throughput for a higher level to stay."""
COMPARABLE = 1.5
"""Levels further apart than this factor are compared by throughput, others by latency."""
HOLD_S, HOLD_MOST_S = 0.5, 20.0
"""Pause after a refusal of the only call in flight; it doubles with each further one in a row."""
WINDOW_LEAST = 8
"""Answers from which a latency is read, at least."""

CallOutcome = Literal["ok", "refused", "lost"]
"""How a call ended: answered or timed out; refused as one too many; without a word on the server's load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotPlace:
    """A call's place among those in flight."""

    number: int


def most_at_once(setting: int | Literal["auto"]) -> int:
    """Return how many calls, or rollouts that make them, may be in flight at most."""
    return MOST if setting == AUTO else setting


def with_batches(wanted: int, asked: object) -> int:
    """Return how many calls of a model, or rollouts of an actor, may be in flight; of others `wanted`.

    In a batch all of them wait together, so the more the better.
    """
    return max(wanted, BATCHED) if getattr(asked, "batched", False) else wanted


class LimitSeen:
    """What an endpoint has shown."""

    def __init__(self, limit: int) -> None:
        """It starts with this limit."""
        self.calls = self.refused = 0
        self.lowest = self.highest = limit
        """Of the limit since the first refusal or slowdown; before, only what it grew to."""


class LatencyWindow:
    """The answers at one level."""

    def __init__(self, after: int = 0) -> None:
        """They are to calls `after` this number."""
        self.after = after
        self.latencies_s: list[float] = []
        self.full = False
        """Whether all places were taken at some time."""

    def median_s(self) -> float:
        """Return the median latency."""
        return sorted(self.latencies_s)[len(self.latencies_s) // 2]


class Concurrency:
    """How many calls may be in flight at one endpoint."""

    def __init__(self, start: int = START, most: int = MOST) -> None:
        """`start` calls may be in flight at first, `most` at any time."""
        self.limit = min(start, most)
        """Calls that may be in flight now."""
        self.in_flight = 0
        self.seen = LimitSeen(self.limit)
        self.found = False
        """Whether the endpoint has shown a limit."""
        self.held_until = 0.0
        """No call begins before this time of the caller's clock."""
        self._most = most
        self._numbers = 0
        self._window = LatencyWindow()
        self._step, self._probe_calls = 0, PROBE_CALLS
        self._answered = self.limit
        """Calls since the last cut; before it, enough for none to count as soon after another."""
        self._reference: tuple[int, float] | None = None
        """A level, and its latency."""
        self._cut_before, self._cut_floor = 0, 1
        """Calls up to this number were under way at the last cut, and deepen it to this level at most."""
        self._refused_in_row = 0

    def is_free(self, now: float) -> bool:
        """Return whether another call may begin."""
        return self.in_flight < self.limit and now >= self.held_until

    def begin(self) -> SlotPlace:
        """Take a place for a call that begins."""
        self.in_flight += 1
        self._window.full = self._window.full or self.in_flight >= self.limit
        self._numbers += 1
        return SlotPlace(number=self._numbers)

    def end(
        self,
        place: SlotPlace,
        outcome: CallOutcome,
        *,
        latency_s: float = 0.0,
        wait_s: float = 0.0,
        now: float = 0.0,
    ) -> None:
        """Free the place of a call that ended; with a refusal the server may ask to wait `wait_s`."""
        self.in_flight -= 1
        if outcome == "lost":
            return
        self.seen.calls += 1
        if outcome == "refused":
            self.seen.refused += 1
            self._refuse(place, wait_s, now)
            return
        self._refused_in_row = 0
        self._answered += 1
        if place.number > self._window.after:
            self._window.latencies_s.append(latency_s)
            if len(self._window.latencies_s) >= self._window_size():
                self._close_window()

    def _window_size(self) -> int:
        """Return after how many answers the level is judged; a level below a known limit holds for longer."""
        if self.found and not self._step:
            return max(self._probe_calls, self.limit)
        return max(WINDOW_LEAST, self.limit // 2)

    def _refuse(self, place: SlotPlace, wait_s: float, now: float) -> None:
        self.held_until = max(self.held_until, now + wait_s)
        if self.limit == 1:
            pause_s = backoff_s(self._refused_in_row, HOLD_S, HOLD_MOST_S)
            self.held_until = max(self.held_until, now + pause_s)
            self._refused_in_row += 1
        if place.number <= self._cut_before:
            self._set(max(self._cut_floor, self.limit - 1))
        else:
            self._cut_floor, self._cut_before = max(1, self.limit // 2), self._numbers
            self._set(self._next_below())
        self._cut()

    def _next_below(self) -> int:
        """Return the level to fall to from one at which a call was refused."""
        if self._answered < self.limit // 2:  # the cut before was not deep enough
            self._probe_calls = max(self._probe_calls // 2, PROBE_CALLS)
            return min(int(self.limit * STORM), self.limit - 1)
        if self._step > 1:  # it had grown: the endpoint takes another number now
            self._probe_calls = PROBE_CALLS_FOUND
        else:
            self._probe_calls = min(2 * self._probe_calls, PROBE_CALLS_MOST)
        return self.limit - 1

    def _cut(self) -> None:
        if not self.found:
            self.found, self.seen.lowest, self.seen.highest = True, self.limit, self.limit
        self._step = self._answered = 0
        self._window = LatencyWindow(self._numbers)

    def _close_window(self) -> None:
        """Judge the level by its answers: grow, hold, or cut."""
        latency_s, full = self._window.median_s(), self._window.full
        self._window = LatencyWindow(self._numbers)
        if self._is_slow(latency_s):
            return
        if not full or self.limit >= self._most:
            return
        if not self.found:
            self._set(2 * self.limit)
            return
        self._step = min(max(1, 2 * self._step), max(1, self.limit // GROWTH))
        self._set(self.limit + self._step)

    def _is_slow(self, latency_s: float) -> bool:
        """Cut and return True where the level costs latency for nothing; else keep its latency in mind."""
        known = self._reference
        if known is None or latency_s <= 0.0:
            self._reference = (self.limit, latency_s) if latency_s > 0.0 else None
            return False
        level, before_s = known
        ratio = self.limit / level
        if ratio >= COMPARABLE:
            if ratio * before_s / latency_s < 1 + WORTH * (ratio - 1):
                self._set(level)
                self._cut()
                return True
            self._reference = (self.limit, latency_s)
        elif ratio <= 1 / COMPARABLE:
            self._reference = (self.limit, latency_s)
        elif latency_s > RISE * before_s:
            self._set(int(self.limit * STORM))
            self._reference = None  # what stays slow with less is slow by itself
            self._cut()
            return True
        else:
            self._reference = (level, min(latency_s, 0.9 * before_s + 0.1 * latency_s))
        return False

    def _set(self, limit: int) -> None:
        self.limit = max(1, min(limit, self._most))
        self.seen.lowest = min(self.seen.lowest, self.limit)
        self.seen.highest = max(self.seen.highest, self.limit)
