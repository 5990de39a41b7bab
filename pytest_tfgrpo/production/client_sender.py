"""The thread of a client of the loop's service: it sends batches, and tries again while none can be sent."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from pytest_tfgrpo.production.client_link import ServiceLink
from pytest_tfgrpo.production.client_queue import ClientQueue
from pytest_tfgrpo.retry import NOT_ITS_FAULT, backoff_s

_LINGER_S = 0.2
"""How long the first event of a batch waits for others."""
_FIRST_PAUSE_S = 0.25
_WARNED_S = 60.0
"""Seconds between warnings."""
_DIVISIBLE = frozenset({400, 413, 422})
"""Answers that one event of a batch may have caused."""
_FAULTS_IN_A_ROW = 5
"""Other answers from 500 on, after which a batch is given up."""
_log = logging.getLogger("pytest_tfgrpo.loop")


class ClientSender:
    """Sends what a queue holds, on a daemon thread that the first event starts."""

    def __init__(self, url: str, paths: Sequence[str], queue: ClientQueue, link: ServiceLink) -> None:
        """Send what `queue` has for each of `paths` over `link`; logs name the service by its `url`."""
        self._url, self._paths, self._link = url, paths, link
        self.queue = queue
        self.last_error = ""
        """Why events were refused or still wait; empty where nothing was wrong."""
        self._deadline = float("inf")
        self._warned_at = float("-inf")
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._idle = False
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None

    def put(self, path: str, text: str) -> bool:
        """Queue an event; return False if it is dropped."""
        if not self.queue.put(path, text):
            return False
        if self._thread is None:
            self._start()
        elif self._idle:
            self._idle = False
            self._wake.put(None)
        return True

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing waits, or `timeout_s` is over; return whether all was sent or refused."""
        end = time.monotonic() + timeout_s
        self._wake.put(None)
        if self._thread is threading.current_thread():  # it does not wait for itself
            return not self.queue.waiting
        while self.queue.waiting and time.monotonic() < end:
            time.sleep(0.01)
        return not self.queue.waiting

    def end(self, timeout_s: float) -> None:
        """Take no more events, and send what waits for at most `timeout_s`."""
        self._deadline = min(self._deadline, time.monotonic() + timeout_s)
        self.queue.closed = True
        self._wake.put(None)

    def join(self) -> None:
        """Wait for the end of the thread; without one, send here."""
        thread = self._thread
        if thread is None:
            while self.queue.waiting:
                self._send_batch()
            self._link.close()
        elif thread is not threading.current_thread():
            thread.join(max(0.0, self._deadline - time.monotonic()) + 0.1)

    def leave(self) -> None:
        """Leave the connection to the parent of this process."""
        self._link.close()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="tfgrpo-loop-client", daemon=True)
        with self._lock:
            if self._thread is not None:  # started by another thread meanwhile, or within this call
                return
            self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter ends: the next call or the end sends
            self._thread = None

    def _run(self) -> None:
        """Send until the queue is closed and nothing waits, or the deadline is over."""
        queue = self.queue
        while True:
            if not queue.waiting:
                self._idle = True
                if not queue.closed and not queue.waiting:
                    self._wake.get()
                self._idle = False
                if not queue.waiting and queue.closed:
                    self._link.close()
                    return
            if not queue.has_batch and not queue.closed:
                self._pause(_LINGER_S)
            self._send_batch()

    def _send_batch(self) -> None:
        for path in self._paths:
            texts = self.queue.take(path)
            if not texts:
                continue
            try:
                self._deliver(path, texts)
            except Exception as error:  # noqa: BLE001 - the thread lives as long as the process
                self._refuse(texts, f"{type(error).__name__}: {error}"[:300])

    def _deliver(self, path: str, texts: list[str]) -> None:
        """Send events until the service has answered for them, or the deadline is over."""
        pauses = faults = 0
        while True:
            if time.monotonic() >= self._deadline:
                self.queue.settle(dropped=len(texts))
                return
            answer = self._link.post(path, texts, self._deadline)
            if 200 <= answer.status < 300 or (answer.status == 422 and answer.refused):
                refused = min(answer.refused, len(texts))
                self.queue.settle(sent=len(texts) - refused)
                self._refuse(texts[:refused], answer.error)
                return
            if answer.status in _DIVISIBLE and len(texts) > 1:
                middle = len(texts) // 2
                self._deliver(path, texts[:middle])
                self._deliver(path, texts[middle:])
                return
            faults += answer.status >= 500
            passing = answer.status in NOT_ITS_FAULT or not answer.status
            if not passing and (answer.status < 500 or faults >= _FAULTS_IN_A_ROW):
                self._refuse(texts, answer.error)
                return
            self._warn(answer.error)
            self._pause(answer.retry_after_s or backoff_s(pauses, _FIRST_PAUSE_S) * random.uniform(0.5, 1.0))
            pauses += 1

    def _refuse(self, texts: list[str], error: str) -> None:
        if texts:
            self.queue.settle(refused=len(texts))
            self._warn(error)

    def _warn(self, error: str) -> None:
        """Keep an error, and log it where none was logged for a while."""
        self.last_error = error
        if time.monotonic() - self._warned_at >= _WARNED_S:
            self._warned_at = time.monotonic()
            _log.warning("the loop's service at %s %s; %d events wait", self._url, error, self.queue.waiting)

    def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the deadline; the end of the client ends it."""
        left = min(seconds, self._deadline - time.monotonic())
        try:
            self._wake.get(timeout=max(0.0, left))
        except Empty:
            return
