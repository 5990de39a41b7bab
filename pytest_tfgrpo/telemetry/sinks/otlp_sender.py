"""The sender: a bounded queue of spans, and a thread that sends them; a loss is counted."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from pytest_tfgrpo.retry import backoff_s
from pytest_tfgrpo.telemetry.sinks.otlp_destination import Destination, SendError

FLUSH_S = 2.0
"""How long the end of a run waits for what is not yet sent."""
BATCH_MAX_BYTES = 4_000_000
QUEUE_MAX_BYTES = 64_000_000
PAUSES_S = (0.0, 0.0, *(backoff_s(waited, 0.25) for waited in range(4)))
"""Before each attempt at a request; only one is made while requests fail, two at the end of a run."""


class Sender:
    """Sends spans in order; to be closed once."""

    def __init__(
        self,
        destination: Destination,
        wrap: Callable[[Iterable[bytes]], bytes],
        *,
        queue_max: int,
        batch_max: int,
        delay_s: float,
    ) -> None:
        """`wrap` returns a request with spans; no thread starts before `put`.

        At most `queue_max` spans wait; a request has `batch_max`, or what there is after `delay_s`.
        """
        self._destination, self._wrap = destination, wrap
        self._queue_max, self._batch_max, self._delay_s = queue_max, batch_max, delay_s
        self._queue = deque[bytes]()
        self._queued_bytes = 0
        self._unsent = 0
        """Spans that are neither sent nor lost yet."""
        self._state = threading.Condition()
        self._ends_at: float | None = None
        self._abandoned = False
        self._lost: Counter[str] = Counter()
        self._failing = ""
        """Why requests fail at present."""
        self._connection: http.client.HTTPConnection | None = None
        self._thread: threading.Thread | None = None

    def put(self, count: int, encode: Callable[[], list[bytes]]) -> None:
        """Queue the spans that `encode` returns, so many of them; where the queue is full they are lost.

        Nothing is waited for and nothing raised. Spans are made here, not in the thread, which would have to
        fetch cold records and would keep the engine waiting for the interpreter: it costs half as much.
        """
        with self._state:
            if self._ends() or self._unsent + count > self._queue_max or self._queued_bytes > QUEUE_MAX_BYTES:
                self._lost[self._failing or "the collector is too slow"] += count
                return
        try:
            spans = encode()
        except Exception as error:  # noqa: BLE001 - what cannot be encoded is a loss like any other
            with self._state:
                self._lost[f"not encoded ({type(error).__name__})"] += count
            return
        with self._state:
            self._queue.extend(spans)
            self._queued_bytes += sum(map(len, spans))
            self._unsent += len(spans)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tfgrpo-otel", daemon=True)
                self._thread.start()
            elif len(self._queue) >= self._batch_max:
                self._state.notify()

    def close(self) -> Mapping[str, int]:
        """Send what is queued, for FLUSH_S at most; returns how many spans were lost, by reason."""
        with self._state:
            if self._ends_at is None:
                self._ends_at = time.monotonic() + FLUSH_S
                self._state.notify()
        if self._thread is not None:
            self._thread.join(max(0.0, self._ends_at - time.monotonic()))
        with self._state:
            if self._unsent:
                why = self._failing or f"not sent {FLUSH_S:g} s after the end of the run"
                self._lost[why] += self._unsent
            self._abandoned, self._unsent = True, 0
            self._queue.clear()
            self._state.notify()
        with suppress(OSError, AttributeError):  # wakes a thread that waits for an answer
            self._connection.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        return dict(self._lost)

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(self._is_due, self._delay_s)
                batch, ends = self._taken(), self._ends()
            if batch:
                self._send(batch)
            if self._abandoned or (ends and not batch):
                break
        if self._connection is not None:
            self._connection.close()

    def _taken(self) -> list[bytes]:
        """Take the spans of a request from the queue."""
        batch: list[bytes] = []
        size = 0
        while self._queue and len(batch) < self._batch_max and size < BATCH_MAX_BYTES:
            batch.append(self._queue.popleft())
            size += len(batch[-1])
        self._queued_bytes -= size
        return batch

    def _is_due(self) -> bool:
        return self._ends() or len(self._queue) >= self._batch_max

    def _ends(self) -> bool:
        return self._ends_at is not None

    def _is_over(self) -> bool:
        """Return whether the time for sending is over; `close` counts what is left."""
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _settle(self, spans: int, lost: str = "", rejected: int = 0) -> None:
        """Count spans as sent, or as lost for a reason."""
        with self._state:
            if self._abandoned:  # `close` has counted them
                return
            self._unsent -= spans
            if lost:
                self._lost[lost] += spans
            if rejected:
                self._lost["rejected by the collector"] += min(rejected, spans)

    def _send(self, batch: list[bytes]) -> None:
        body = self._wrap(batch)
        give_up_at = time.monotonic() + self._destination.timeout_s
        for pause in PAUSES_S[:1] if self._failing else PAUSES_S:
            with self._state:
                if pause and self._state.wait_for(self._ends, pause):
                    break
                give_up_at = min(give_up_at, self._ends_at or give_up_at)
            left_s = give_up_at - time.monotonic()
            if self._is_over():
                return
            if left_s <= 0:
                break
            try:
                rejected = self._destination.send(self._connected(left_s), body)
            except SendError as error:
                self._disconnect()
                if self._is_over():
                    return
                self._failing = str(error)
                if not error.retry:
                    break
            else:
                self._failing = ""
                self._settle(len(batch), rejected=rejected)
                return
        self._settle(len(batch), self._failing or "no answer in time")

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._destination.connect(timeout_s)
        elif self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
