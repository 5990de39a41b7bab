"""A wake-up call for a thread, from where `threading.Event` may not be used."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class WakeUp:
    """Is set from anywhere, and waited for by one thread.

    An Event holds a lock while it is set, waited for or cleared. Garbage collection or a signal may run code
    in between, on the same thread, and that code would wait for ever if it set the Event too.
    """

    def __init__(self) -> None:
        """It is not set."""
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake the thread that waits, and let it wait no more until it is cleared."""
        self._calls.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is set, or `timeout_s` is over; return whether it is."""
        try:
            self._calls.get(timeout=timeout_s)
        except Empty:
            return False
        self._calls.put(None)
        return True

    def clear(self) -> None:
        """Let the next wait last."""
        while not self._calls.empty():
            self._calls.get_nowait()
