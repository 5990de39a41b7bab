"""What a client of the loop's service has not sent yet, and what became of the rest."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

_BATCH_EVENTS, _BATCH_BYTES = 500, 1_000_000


class ClientQueue:
    """Encoded events by the path that takes them; bounded, and shared by threads.

    A signal's handler or the garbage collector may call it within itself.
    """

    def __init__(self, paths: Sequence[str], capacity: int, capacity_bytes: int) -> None:
        """Take at most `capacity` events of `capacity_bytes` together."""
        self._capacity, self._capacity_bytes = capacity, capacity_bytes
        self._lock = threading.RLock()
        self._queues: dict[str, deque[str]] = {path: deque() for path in paths}
        self._queued = self._bytes = self._sending = 0
        self.sent = self.refused = self.dropped = self.invalid = 0
        self.closed = False
        """True when it takes no more events."""

    @property
    def waiting(self) -> int:
        """How many events are queued or under way."""
        return self._queued + self._sending

    @property
    def has_batch(self) -> bool:
        """Whether a batch would be full."""
        return self._bytes >= _BATCH_BYTES or max(map(len, self._queues.values())) >= _BATCH_EVENTS

    def put(self, path: str, text: str) -> bool:
        """Queue an event; return False if it is dropped."""
        size = len(text)
        with self._lock:
            full = self._queued >= self._capacity or self._bytes + size > self._capacity_bytes
            if full or self.closed:
                self.dropped += 1
                return False
            self._bytes += size
            self._queued += 1
            self._queues[path].append(text)
        return True

    def take(self, path: str) -> list[str]:
        """Return the next events for a path that go together; they wait until they are settled."""
        queue, size = self._queues[path], 0
        texts: list[str] = []
        with self._lock:
            while queue and len(texts) < _BATCH_EVENTS and (not texts or size + len(queue[0]) < _BATCH_BYTES):
                size += len(queue[0])
                self._sending += 1  # at first, so that it waits throughout
                self._queued -= 1
                texts.append(queue.popleft())
            self._bytes -= size
        return texts

    def settle(self, *, sent: int = 0, refused: int = 0, dropped: int = 0) -> None:
        """Count what became of events that were taken."""
        with self._lock:
            self._sending -= sent + refused + dropped
            self.sent += sent
            self.refused += refused
            self.dropped += dropped

    def count_invalid(self) -> None:
        """Count an event that cannot be sent."""
        with self._lock:
            self.invalid += 1
