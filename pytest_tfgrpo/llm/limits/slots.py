"""Slots: the calls in flight at an endpoint, a fixed number of them or as many as it shows that it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.records import EndpointUse
from pytest_tfgrpo.llm.limits.concurrency import CallOutcome, Concurrency, SlotPlace
from pytest_tfgrpo.llm.limits.queueing import current_ticket

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.protocol import Completer

Standing = Callable[[], AbstractContextManager[None]]
"""Opens what a call waits in, so that its time limit stands still."""


class Slots(asyncio.Semaphore):
    """A fixed number of calls in flight at an endpoint."""

    def __init__(self, number: int, standing: Standing) -> None:
        """Who waits for one of `number` slots does so within what `standing` returns."""
        super().__init__(number)
        self._standing = standing

    async def acquire(self) -> Literal[True]:
        """Take a slot, once one is free."""
        with self._standing() if self.locked() else nullcontext():
            return await super().acquire()


class SlotEnd:
    """How a call in a slot ended; whoever made it says so."""

    __slots__ = ("latency_s", "outcome", "wait_s")

    def __init__(self) -> None:
        self.outcome: CallOutcome = "lost"
        self.latency_s = self.wait_s = 0.0

    def tell(self, outcome: CallOutcome, *, latency_s: float = 0.0, wait_s: float = 0.0) -> None:
        """Say how the call ended, how long it took, and how long the server asks to wait."""
        self.outcome, self.latency_s, self.wait_s = outcome, latency_s, wait_s


class EndpointState(NamedTuple):
    """An endpoint at one moment."""

    endpoint: str
    in_flight: int
    limit: int
    held_s: float
    """How long no call will begin: the server asked for it, or refuses every one; 0: calls begin."""


class AdaptiveSlots:
    """As many calls in flight as the endpoint takes; used on the event loop only.

    Calls of rollouts that began first go first, so that what is under way ends before more is begun.
    """

    def __init__(self, endpoint: str, standing: Standing, concurrency: Concurrency | None = None) -> None:
        """Calls wait within what `standing` returns."""
        self.endpoint = endpoint
        self.concurrency = concurrency or Concurrency()
        self._standing = standing
        self._arrivals = 0
        self._queue: list[tuple[int, int, asyncio.Future[SlotPlace]]] = []
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[SlotEnd]:
        """Wait for a slot and hold it; its end teaches how many there are."""
        clock = time.monotonic
        waits = bool(self._queue) or not self.concurrency.is_free(clock())
        place = await self._wait() if waits else self.concurrency.begin()
        ended = SlotEnd()
        try:
            yield ended
        finally:
            self._free(place, ended, clock())

    async def _wait(self) -> SlotPlace:
        self._arrivals += 1
        given: asyncio.Future[SlotPlace] = asyncio.get_running_loop().create_future()
        entry = (current_ticket().place, self._arrivals, given)
        heappush(self._queue, entry)
        self._serve()
        try:
            with self._standing():
                return await given
        except asyncio.CancelledError:
            if entry in self._queue:
                self._queue.remove(entry)
                heapify(self._queue)
            elif not given.cancelled():
                self._free(given.result(), SlotEnd(), time.monotonic())
            raise

    def _free(self, place: SlotPlace, ended: SlotEnd, now: float) -> None:
        self.concurrency.end(place, ended.outcome, latency_s=ended.latency_s, wait_s=ended.wait_s, now=now)
        self._serve()

    def _serve(self) -> None:
        """Assign free slots to the next calls; look again when a pause ends."""
        while self._queue and self.concurrency.is_free(time.monotonic()):
            given = heappop(self._queue)[2]
            if not given.done():
                given.set_result(self.concurrency.begin())
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._queue and self.held_s:
            self._alarm = asyncio.get_running_loop().call_later(self.held_s, self._serve)

    @property
    def held_s(self) -> float:
        """How long no call will begin: the server asked for it, or refuses every one; 0: calls begin."""
        return max(0.0, self.concurrency.held_until - time.monotonic())

    @property
    def is_idle(self) -> bool:
        """Whether half of the slots are free, and nobody waits."""
        known = self.concurrency
        return not self._queue and 2 * known.in_flight <= known.limit and known.is_free(time.monotonic())

    def state(self) -> EndpointState:
        """Return what goes on; may be called on any thread."""
        known = self.concurrency
        return EndpointState(self.endpoint, known.in_flight, known.limit, self.held_s)

    def use(self) -> EndpointUse:
        """Return what was found out so far."""
        known = self.concurrency
        return EndpointUse(
            endpoint=self.endpoint,
            concurrency=known.limit,
            lowest=known.seen.lowest,
            highest=known.seen.highest,
            found=known.found,
            calls=known.seen.calls,
            refused=known.seen.refused,
        )


EndpointSlots: TypeAlias = dict[str, "Slots | AdaptiveSlots"]
"""The slots of endpoints by name, of all runs that share an event loop."""


def adaptive_slots(models: Iterable[Completer]) -> tuple[AdaptiveSlots, ...]:
    """Return the slots of the endpoints of `models` whose concurrency adapts, each once."""
    return tuple({id(slots): slots for model in models for slots in getattr(model, "adaptive", ())}.values())


def endpoint_uses(models: Iterable[Completer]) -> tuple[EndpointUse, ...]:
    """Return what was found out about the endpoints of `models` that adapt and were called."""
    return tuple(slots.use() for slots in adaptive_slots(models) if slots.concurrency.seen.calls)


def failover_warnings(models: Iterable[Completer]) -> list[str]:
    """Return what to say of endpoints of pools that did not answer."""
    return [text for model in models for text in getattr(model, "warnings", ())]
