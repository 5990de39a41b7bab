"""The breaker: pauses a run whose actor's provider is away, and ends it when that stays away.

Whether it is away is found out by making a rollout again that worked before: an error that only some prompts
cause stops nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import AWAY, LOST_WORKER
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.attempts.first_crashes import FirstCrashes
from pytest_tfgrpo.llm.limits import patience

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot

REFUSED = frozenset({"content_filter", "rejected"})
"""Reason codes of errors with which a provider answers: it is there."""
IN_A_ROW = 8
"""Errors of the provider, one after the other, after which the run checks whether it is away."""


class Attempted(NamedTuple):
    """An attempt at a rollout."""

    slot: Slot
    rollout: Rollout
    outcome: AttemptResult
    began: float
    """By the loop's clock."""


class Breaker:
    """Counts errors of the provider over all phases of a run; used on the event loop only."""

    def __init__(self, notice: patience.Tell, *, watching: bool) -> None:
        """`notice` takes what the run does about it; nothing happens unless `watching`, as in a replay."""
        self.reason = ""
        """Why the run must end; empty while it may go on."""
        self.known: Slot | None = None
        """A rollout that worked."""
        self.in_a_row = 0
        """Errors since something worked that began after the last of them."""
        self.first = FirstCrashes(self.stop, watching=watching)
        """How the first rollouts of the run failed."""
        self._notice = notice
        self._watching = watching
        self._limit = IN_A_ROW
        self._worked_at: float | None = None
        self._failed_at = 0.0
        self.back_at = 0.0
        """When the provider answered again after the last pause, by the loop's clock."""
        self._last = ""
        self.in_flight = 0
        """Attempts that go on."""
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._closed.set()

    @property
    def due(self) -> bool:
        """Return whether it is time to find out if the provider is away."""
        return self.in_a_row >= self._limit and self._closed.is_set()

    async def passing(self) -> bool:
        """Return whether another rollout may be made, once the run does not pause."""
        await self._closed.wait()
        return not self.reason

    @contextmanager
    def attempting(self) -> Iterator[None]:
        """Count an attempt as in flight."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._changed.set()

    def is_lost(self, attempted: Attempted) -> bool:
        """Count an attempt; return whether it failed for a reason that may pass, and should be made again."""
        outcome, failure = attempted.outcome, attempted.outcome.failure
        if not self._watching or outcome.status != "error" or failure is None or failure.code not in AWAY:
            return False
        if failure.code == LOST_WORKER:  # others may reach the provider
            return True
        self.in_a_row += 1
        self._failed_at = asyncio.get_running_loop().time()
        self._last = f"{failure.code}: {line(failure.message, 300)}"
        return True

    def is_worth_another(self, outcome: AttemptResult) -> bool:
        """Return whether an attempt may work later, that is not counted here: its fixtures are all it had."""
        failure = outcome.failure
        away = outcome.status == "error" and failure is not None and failure.code in AWAY
        return away and self._watching and not self.reason

    def worked(self, attempted: Attempted) -> None:
        """Take note of an attempt that reached its provider, whatever it came to; others do not count."""
        failure = attempted.outcome.failure
        if attempted.outcome.status == "error" and (failure is None or failure.code not in REFUSED):
            return
        self.know(attempted.slot, attempted.outcome.status == "ok")
        if attempted.began >= self._failed_at:  # else it may have been answered before the provider went
            self.in_a_row = 0
        self._worked_at = asyncio.get_running_loop().time()

    def know(self, slot: Slot, answered: bool) -> None:
        """Keep a rollout, perhaps of an interrupted run, to find out later whether the provider is away."""
        if answered or self.known is None:
            self.known = slot
        if answered:
            self.first.end()

    async def pause(self, probe: Callable[[Slot], Awaitable[bool]]) -> None:
        """Hold further rollouts until the provider answers, or set `reason`; `probe` makes one again.

        Where nothing worked in this process, and nothing in flight does, there is nothing to wait for.
        """
        if not self._closed.is_set():
            await self._closed.wait()
            return

        async def answers() -> bool:
            known = self.known
            return self.in_a_row == 0 or (known is not None and await probe(known))

        errors = self.in_a_row
        self._closed.clear()
        try:
            while self._worked_at is None and self.in_flight:
                self._changed.clear()
                await self._changed.wait()
            if self._worked_at is None:
                waits = 0 if await answers() else None
            else:
                waits = await patience.outwait(answers, lambda: self._notice(self._pausing()))
            if waits:
                self.back_at = asyncio.get_running_loop().time()
            if waits is None:
                self.reason = self._away()
            elif waits == 0 and errors >= self._limit:
                self._limit *= 2  # some prompts fail by themselves: look less often
            self.in_a_row = 0
        finally:
            self._closed.set()

    def stop(self, reason: str) -> None:
        """End the run for `reason`, with what is in flight."""
        self.reason = self.reason or reason

    def _pausing(self) -> str:
        return f"paused, the provider does not answer: {self._last}"

    def _away(self) -> str:
        if self._worked_at is None:
            since = "does not answer"
        else:
            since = f"has not answered for {patience.TOTAL_S:.0f} s"
        return f"the actor's provider {since}: {self._last}"
