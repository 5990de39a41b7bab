"""Events of agents on their way to the thread that writes: an agent pays for a ``deque.append``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import field
from threading import Event, RLock

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.python.wakeup import WakeUp
from pytest_tfgrpo.production.live.records import LiveEvent

BATCH = 1000
"""Most events of one transaction."""
LINGER_S = 0.02
"""How long the first event of a batch waits for others: they share one commit."""
POLL_S = 1.0
"""How often an idle collector looks for runs that time out, another process's selector, and a reset."""


@dataclass(frozen=True, slots=True)
class _LostEvent:
    """Stands in the queue for all events of a run that it had no room for since."""

    event: LiveEvent


@dataclass(slots=True)
class LiveBatch:
    """What one transaction writes."""

    events: list[LiveEvent] = field(default_factory=list)
    lost: list[LiveEvent] = field(default_factory=list)
    """Those of runs that lost events to a full queue."""
    flushed: list[Event] = field(default_factory=list)
    """Set once all before them is written, or dropped."""

    def __len__(self) -> int:
        return len(self.events) + len(self.lost)

    def clear(self) -> None:
        """Begin another transaction; who waits for this one still waits."""
        self.events, self.lost = [], []

    def answer(self) -> None:
        """Let those go on who wait for what is written, or dropped, now."""
        for done in self.flushed:
            done.set()
        self.flushed = []


class EventBuffer:
    """A bounded queue. Any thread may call `put`, also within itself, as garbage collection may end a run."""

    def __init__(self, capacity: int, begin: Callable[[], None] | None = None) -> None:
        """Hold at most `capacity` events; the first one calls `begin`."""
        self._capacity, self._begin = capacity, begin
        self._room = 0 if begin else capacity
        self._queue: deque[LiveEvent | _LostEvent | Event] = deque()
        self._marked: set[tuple[str, str]] = set()
        self._lock = RLock()
        self._wake, self._hurry = WakeUp(), WakeUp()
        self._asleep = False
        self.held = False
        """Nothing is collected until a reset in the store."""
        self.closing = False
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, event: LiveEvent) -> bool:
        """Queue an event; return False if it is dropped. Never waits, and never raises."""
        if self.held or self.closing:
            self.dropped += 1
            return False
        queue = self._queue
        if len(queue) >= self._room:
            return self._crowded(event)
        queue.append(event)
        if self._asleep:
            self._asleep = False  # one is enough
            self._wake.set()
        return True

    def _crowded(self, event: LiveEvent) -> bool:
        """Put a mark into the queue, after what is there of the run and before what follows."""
        with self._lock:
            if not self._room and self._begin is not None:
                self._room = self._capacity
                self._begin()
            if len(self._queue) < self._room:
                return self.put(event)
            key = (event.run, event.owner)
            if key not in self._marked:
                self._marked.add(key)
                light = {name: value for name, value in event.data.items() if name not in ("prompt", "reply")}
                self._queue.append(_LostEvent(event._replace(data=light)))
        return False

    def flush(self) -> Event:
        """Return what is set once all that is queued now is written, or dropped."""
        done = Event()
        self._queue.append(done)
        self._hurry.set()
        self._wake.set()
        return done

    def close(self) -> None:
        """Take no more events, and let the thread write what is queued."""
        self.closing = True
        self._hurry.set()
        self._wake.set()

    # the thread that writes

    def wait(self) -> None:
        """Wait for an event, then a moment for others."""
        self._asleep = True
        if not self._queue:
            self._wake.wait(POLL_S)
        self._asleep = False
        if self._queue:
            self._hurry.wait(LINGER_S)

    def pause(self, seconds: float) -> None:
        """Wait, unless somebody is in a hurry."""
        self._hurry.wait(seconds)

    def rearm(self) -> None:
        """Let the next wait last; none does at the end."""
        self._wake.clear()
        if not self.closing:
            self._hurry.clear()

    def drain(self, batch: LiveBatch) -> None:
        """Take events from the queue up to a batch; what could not be written before comes first."""
        queue = self._queue
        while queue and len(batch.events) < BATCH:
            item = queue.popleft()
            if isinstance(item, LiveEvent):
                batch.events.append(item)
            elif isinstance(item, Event):
                batch.flushed.append(item)
            else:
                batch.lost.append(item.event)
                with self._lock:
                    self._marked.discard((item.event.run, item.event.owner))

    def drop(self, batch: LiveBatch) -> None:
        """Drop what is queued and in a batch."""
        while batch or self._queue:
            lost = len(batch)  # called before: threads may switch within a call, and `put` counts too
            self.dropped += lost
            batch.clear()
            self.drain(batch)
        batch.answer()
