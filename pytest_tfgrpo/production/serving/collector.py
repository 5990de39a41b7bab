"""What passes the proxy, on its way to the bus: through the same door as everything, in a thread of its own.

What finds no room while the bus is away is dropped and counted; a request never waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from pytest_tfgrpo.core.errors import BusError, describe
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.serving.chat_spans import ChatExchange, spans_of
from pytest_tfgrpo.retry import backoff_s

MOST_EXCHANGES, MOST_BYTES = 10_000, 128 << 20
_BATCH, _GATHER_S = 200, 0.3
"""Exchanges that are published together, and how long they are waited for."""
_END_S = 5.0
"""How long what waits may take at the end."""


class ChatCollector:
    """Publishes exchanges; any thread may add one."""

    def __init__(self, open_intake: Callable[[], Intake], report: Callable[[str], None]) -> None:
        """`open_intake` is called again until it does not raise."""
        self._open_intake, self._report = open_intake, report
        self._intake: Intake | None = None
        self._waiting: deque[ChatExchange] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._publish_all, name="tfgrpo-collector", daemon=True)
        self.published = self.dropped = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, exchange: ChatExchange) -> None:
        """Publish an exchange, some time."""
        size = _size(exchange)
        with self._changed:
            if len(self._waiting) >= MOST_EXCHANGES or self._bytes + size > MOST_BYTES:
                self.dropped += 1
                return
            self._waiting.append(exchange)
            self._bytes += size
            if len(self._waiting) in (1, _BATCH):
                self._changed.notify()

    def close(self) -> None:
        """Publish what waits, if that takes no long time; the rest is dropped and counted."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(_END_S)
        if left := len(self._waiting):
            self.dropped += left
            self._report(f"{left} completions that passed were not published: the bus takes none")

    def publish(self, batch: list[ChatExchange]) -> None:
        """Publish exchanges; raises BusError, and what opens the door, and then all may be brought again."""
        if self._intake is None:
            self._intake = self._open_intake()
        try:
            self._intake.spans([span for exchange in batch for span in spans_of(exchange)])
            self.published += len(batch)
        except BusError:
            raise
        except Exception as error:  # noqa: BLE001 - one that nobody can read is not to stop the others
            if len(batch) > 1:
                for exchange in batch:
                    self.publish([exchange])
                return
            self.dropped += 1
            self._report(f"a completion that passed cannot be read, and is dropped: {describe(error)}")

    def _publish_all(self) -> None:
        failures = 0
        until = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                self._changed.wait_for(lambda: len(self._waiting) >= _BATCH or self._ended, _GATHER_S)
                batch = list(islice(self._waiting, _BATCH))
                if self._ended:
                    until = until or time.monotonic() + _END_S
            if not batch or (until is not None and time.monotonic() > until):
                return
            try:
                self.publish(batch)
            except Exception as error:  # noqa: BLE001 - the next try may succeed, and a request is not to fail
                self._report(f"completions that passed are not published now: {describe(error)}")
                failures += 1
                with self._changed:
                    if not self._ended:
                        self._changed.wait_for(lambda: self._ended, backoff_s(failures))
                continue
            failures = 0
            with self._changed:
                for exchange in batch:
                    self._waiting.popleft()
                    self._bytes -= _size(exchange)


def _size(exchange: ChatExchange) -> int:
    return len(exchange.chat.text) + len(exchange.answer)
