"""A client of the loop's service, for the process that serves: Python's standard library alone.

A call encodes its event, puts it into a bounded queue and returns; it never waits for the service and never
raises. One daemon thread sends batches, tries again while the service cannot be reached, and ends with the
process. What finds no room is dropped and counted. A forked process begins with an empty queue, since its
parent sends what was waiting.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import os
import random
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.client_link import ServiceLink, service_address
from pytest_tfgrpo.retry import NOT_ITS_FAULT, backoff_s

FeedbackType: TypeAlias = Literal[
    "thumbs_up", "thumbs_down", "rating", "correction", "abandonment", "label", "score"
]
NAMESPACE = uuid.UUID("7f1b6a52-0b51-5b0e-9f3f-3d1f6f0c5a6e")
"""Of the ids that follow from a trace."""
_TRAJECTORIES, _FEEDBACK = "/trajectories", "/feedback"
_BATCH_EVENTS, _BATCH_BYTES = 500, 1_000_000
_EVENT_BYTES = 8_000_000
_LINGER_S = 0.2
"""How long the first event of a batch waits for others."""
_FIRST_PAUSE_S = 0.25
_TOLD_S = 60.0
"""Seconds between warnings."""
_DIVISIBLE = frozenset({400, 413, 422})
"""Answers that one event of a batch may have caused."""
_FAULTS_IN_A_ROW = 5
"""Other answers from 500 on, after which a batch is given up."""
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=str).encode
_log = logging.getLogger("pytest_tfgrpo.loop")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientCounts:
    """What became of the events of a client."""

    sent: int
    """Taken by the service."""
    refused: int
    """Refused by the service; it keeps why as a dead letter."""
    dropped: int
    """Found no room in the queue, came after the end, or were not sent before it."""
    invalid: int
    """Cannot be written as JSON, or have more than 8 MB."""
    waiting: int
    last_error: str
    """Why events were refused or still wait; empty where nothing was wrong."""


def trajectory_id_of(trace_id: str, agent_span_id: str = "") -> str:
    """Return the id of the trajectory that the service makes of a trace.

    `trace_id` has 32 hexadecimal digits and `agent_span_id`, that of the outermost agent's span, 16; a trace
    without an agent's span has none.
    """
    return str(uuid.uuid5(NAMESPACE, json.dumps(("trajectory", trace_id.lower(), agent_span_id.lower()))))


class LoopClient:
    """Sends trajectories and feedback to the loop's service; one for a process, shared by its threads."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        capacity: int = 10_000,
        capacity_bytes: int = 64_000_000,
        timeout_s: float = 5.0,
        exit_s: float = 2.0,
    ) -> None:
        """Take the URL of the service, such as ``http://127.0.0.1:4318``, and its bearer token.

        `capacity` and `capacity_bytes` bound what waits, `timeout_s` one wait for the service, and `exit_s`
        how long the end of the process waits for what is queued. Raises ValueError for a URL or token that
        cannot be one; nothing else raises later.
        """
        self._address = service_address(url)
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            if not (token.isascii() and token.isprintable() and token.strip()):
                raise ValueError("token: has characters that no HTTP header can hold, or is empty")
            self._headers["Authorization"] = f"Bearer {token}"
        self._capacity, self._capacity_bytes = capacity, capacity_bytes
        self._timeout_s, self._exit_s = timeout_s, exit_s
        self._closed, self._deadline = False, float("inf")
        self._begin()
        _open.add(self)

    def trajectory(self, payload: Mapping[str, Any]) -> bool:
        """Enqueue a trajectory, as the subject ``agent.rl.trajectory.v1`` has it; return whether it waits."""
        return self._put(_TRAJECTORIES, payload)

    def feedback(
        self,
        trajectory_id: str,
        type: FeedbackType,  # noqa: A002 - the key of the event
        *,
        rating: float | None = None,
        text: str | None = None,
        expected: Any = None,
        component: str | None = None,
        score: float | None = None,
        session_id: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: str | None = None,
        feedback_id: str | None = None,
    ) -> bool:
        """Enqueue what somebody says of a trajectory; return whether it waits.

        A `rating` is from 1 to 5, a `score` from 0 to 1; `timestamp` is ISO 8601 with a zone, and now where
        it is left out. An event with the `feedback_id` of an earlier one counts once.
        """
        event: dict[str, Any] = {
            "feedback_id": feedback_id or f"{self._prefix}{next(self._number):012x}",
            "trajectory_id": trajectory_id,
            "timestamp": timestamp or self._now(),
            "type": type,
        }
        if rating is not None:
            event["rating"] = rating
        if text is not None:
            event["text"] = text
        if expected is not None:
            event["expected"] = expected
        if component is not None:
            event["component"] = component
        if score is not None:
            event["score"] = score
        if session_id is not None:
            event["session_id"] = session_id
        if source is not None:
            event["source"] = source
        if metadata is not None:
            event["metadata"] = metadata
        return self._put(_FEEDBACK, event)

    def counts(self) -> ClientCounts:
        """Return what became of the events so far."""
        return ClientCounts(
            sent=self._sent,
            refused=self._refused,
            dropped=self._dropped,
            invalid=self._invalid,
            waiting=self._waiting(),
            last_error=self._last_error,
        )

    def flush(self, timeout_s: float = 2.0) -> bool:
        """Wait until nothing waits, or `timeout_s` is over; return whether all was sent or refused."""
        end = time.monotonic() + timeout_s
        self._wake.put(None)
        if self._thread is threading.current_thread():  # it does not wait for itself
            return not self._waiting()
        while self._waiting() and time.monotonic() < end:
            time.sleep(0.01)
        return not self._waiting()

    def close(self, timeout_s: float | None = None) -> None:
        """Send what waits for at most `timeout_s`, or else `exit_s`; the rest is dropped and counted."""
        self._end(timeout_s)
        self._join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> None:
        """Start with an empty queue: in a new client, and in a forked process."""
        self._lock = threading.RLock()  # a signal's handler or the garbage collector may call within
        self._queues: dict[str, deque[str]] = {_TRAJECTORIES: deque(), _FEEDBACK: deque()}
        self._bytes = self._sending = 0
        self._second = 0, "1970-01-01T00:00:00"
        self._sent = self._refused = self._dropped = self._invalid = 0
        self._last_error = ""
        self._told_at = float("-inf")
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._idle = False
        self._thread: threading.Thread | None = None
        self._link = ServiceLink(self._address, self._headers, self._timeout_s)
        drawn = str(uuid.uuid4())
        self._prefix, self._number = drawn[:-12], itertools.count(1)

    def _begin_anew(self) -> None:
        """Leave the connection to the parent of this process."""
        self._link.close()
        self._begin()

    def _put(self, path: str, event: Mapping[str, Any]) -> bool:
        try:
            text = _encode(event)
        except Exception as error:  # noqa: BLE001 - an event may hold objects that raise anything
            with self._lock:
                self._invalid += 1
            self._last_error = f"an event cannot be written as JSON: {type(error).__name__}"
            return False
        size = len(text)
        if size > _EVENT_BYTES:
            with self._lock:
                self._invalid += 1
            self._last_error = f"an event has {size} bytes; at most {_EVENT_BYTES} are sent"
            return False
        thread = None
        if self._thread is None:  # made before it is known to be needed: meanwhile another may be started
            thread = threading.Thread(target=self._run, name="tfgrpo-loop-client", daemon=True)
        with self._lock:
            full = self._queued() >= self._capacity or self._bytes + size > self._capacity_bytes
            if full or self._closed:
                self._dropped += 1
                return False
            self._bytes += size
            self._queues[path].append(text)
            start = self._thread is None and thread is not None
            if start:
                self._thread = thread
        if start:
            self._start()
        elif self._idle:
            self._idle = False
            self._wake.put(None)
        return True

    def _now(self) -> str:
        """Return the time as ISO 8601; what stays for a second is made once in it."""
        seconds = time.time()
        whole = int(seconds)
        known, text = self._second
        if known != whole:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
            self._second = whole, text
        return f"{text}.{int((seconds - whole) * 1000):03d}Z"

    def _queued(self) -> int:
        return len(self._queues[_TRAJECTORIES]) + len(self._queues[_FEEDBACK])

    def _waiting(self) -> int:
        return self._queued() + self._sending

    def _start(self) -> None:
        thread = self._thread
        try:
            if thread is not None:
                thread.start()
        except RuntimeError:  # no more threads, or the interpreter ends: the next call or the end sends
            self._thread = None

    def _run(self) -> None:
        """Send until the client is closed and nothing waits, or its deadline is over."""
        while True:
            if not self._waiting():
                self._idle = True
                if not self._closed and not self._waiting():
                    self._wake.get()
                self._idle = False
                if not self._waiting() and self._closed:
                    self._link.close()
                    return
            if not self._full_batch() and not self._closed:
                self._pause(_LINGER_S)
            self._send_batch()

    def _full_batch(self) -> bool:
        return self._bytes >= _BATCH_BYTES or max(map(len, self._queues.values())) >= _BATCH_EVENTS

    def _send_batch(self) -> None:
        for path in (_TRAJECTORIES, _FEEDBACK):
            texts = self._taken(path)
            if not texts:
                continue
            try:
                self._deliver(path, texts)
            except Exception as error:  # noqa: BLE001 - the thread lives as long as the process
                self._settle(texts, refused=len(texts), error=f"{type(error).__name__}: {error}"[:300])

    def _taken(self, path: str) -> list[str]:
        """Return the next events of a queue that go together."""
        queue, size = self._queues[path], 0
        texts: list[str] = []
        with self._lock:
            while queue and len(texts) < _BATCH_EVENTS and (not texts or size + len(queue[0]) < _BATCH_BYTES):
                size += len(queue[0])
                self._sending += 1  # at first, so that it waits throughout
                texts.append(queue.popleft())
            self._bytes -= size
        return texts

    def _deliver(self, path: str, texts: list[str]) -> None:
        """Send events until the service has answered for them, or the deadline is over."""
        pauses = faults = 0
        while True:
            if time.monotonic() >= self._deadline:
                self._settle(texts, dropped=len(texts))
                return
            answer = self._link.post(path, texts, self._deadline)
            if 200 <= answer.status < 300 or (answer.status == 422 and answer.refused):
                refused = min(answer.refused, len(texts))
                self._settle(texts, sent=len(texts) - refused, refused=refused, error=answer.error)
                return
            if answer.status in _DIVISIBLE and len(texts) > 1:
                middle = len(texts) // 2
                self._deliver(path, texts[:middle])
                self._deliver(path, texts[middle:])
                return
            faults += answer.status >= 500
            passing = answer.status in NOT_ITS_FAULT or not answer.status
            if not passing and (answer.status < 500 or faults >= _FAULTS_IN_A_ROW):
                self._settle(texts, refused=len(texts), error=answer.error)
                return
            self._tell(answer.error)
            self._pause(answer.retry_after_s or backoff_s(pauses, _FIRST_PAUSE_S) * random.uniform(0.5, 1.0))
            pauses += 1

    def _settle(
        self, texts: list[str], *, sent: int = 0, refused: int = 0, dropped: int = 0, error: str = ""
    ) -> None:
        with self._lock:
            self._sending -= len(texts)
            self._sent += sent
            self._refused += refused
            self._dropped += dropped
        if refused:
            self._tell(error)

    def _tell(self, error: str) -> None:
        """Keep an error, and log it where none was logged for a while."""
        self._last_error = error
        if time.monotonic() - self._told_at >= _TOLD_S:
            self._told_at = time.monotonic()
            _log.warning("the loop's service at %s %s; %d events wait", self._url, error, self._waiting())

    def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the deadline; the end of the client ends it."""
        left = min(seconds, self._deadline - time.monotonic())
        try:
            self._wake.get(timeout=max(0.0, left))
        except Empty:
            return

    def _end(self, timeout_s: float | None = None) -> None:
        left_s = self._exit_s if timeout_s is None else timeout_s
        self._deadline = min(self._deadline, time.monotonic() + left_s)
        self._closed = True
        self._wake.put(None)

    def _join(self) -> None:
        thread = self._thread
        if thread is None:
            while self._waiting():
                self._send_batch()
            self._link.close()
        elif thread is not threading.current_thread():
            thread.join(max(0.0, self._deadline - time.monotonic()) + 0.1)


_open: weakref.WeakSet[LoopClient] = weakref.WeakSet()


def _close_all() -> None:
    clients = list(_open)
    for client in clients:
        client._end()
    for client in clients:
        client._join()


def _begin_all() -> None:
    for client in list(_open):
        client._begin_anew()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)
