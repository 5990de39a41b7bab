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
import os
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.client_link import ServiceLink, service_address
from pytest_tfgrpo.production.client_queue import ClientQueue
from pytest_tfgrpo.production.client_sender import ClientSender

FeedbackType: TypeAlias = Literal[
    "thumbs_up", "thumbs_down", "rating", "correction", "abandonment", "label", "score"
]
NAMESPACE = uuid.UUID("7f1b6a52-0b51-5b0e-9f3f-3d1f6f0c5a6e")
"""Of the ids that follow from a trace."""
_TRAJECTORIES, _FEEDBACK = _PATHS = "/trajectories", "/feedback"
_EVENT_BYTES = 8_000_000
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=str).encode


class FeedbackDetails(TypedDict, total=False):
    """What an event of feedback may say; None stands for nothing."""

    rating: float | None
    """From 1 to 5."""
    text: str | None
    expected: Any
    component: str | None
    score: float | None
    """From 0 to 1."""
    session_id: str | None
    source: str | None
    metadata: Mapping[str, Any] | None
    timestamp: str | None
    """ISO 8601 with a zone; now where it is left out."""
    feedback_id: str | None
    """An event with that of an earlier one counts once."""


_DETAILS = FeedbackDetails.__annotations__.keys()


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
        address, headers = service_address(url), {"Content-Type": "application/json"}
        if token is not None:
            if not (token.isascii() and token.isprintable() and token.strip()):
                raise ValueError("token: has characters that no HTTP header can hold, or is empty")
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._service = address, headers, timeout_s
        self._bounds = capacity, capacity_bytes
        self._exit_s = exit_s
        self._sender = self._new_sender()
        self._prefix, self._number = _new_ids()
        self._second = 0, "1970-01-01T00:00:00"
        _open.add(self)

    def trajectory(self, payload: Mapping[str, Any]) -> bool:
        """Enqueue a trajectory, as the subject ``agent.rl.trajectory.v1`` has it; return whether it waits."""
        return self._put(_TRAJECTORIES, payload)

    def feedback(
        self,
        trajectory_id: str,
        type: FeedbackType,  # noqa: A002 - the key of the event
        **details: Unpack[FeedbackDetails],
    ) -> bool:
        """Enqueue what somebody says of a trajectory; return whether it waits."""
        if not details.keys() <= _DETAILS:
            unknown = min(details.keys() - _DETAILS)
            raise TypeError(f"feedback() got an unexpected keyword argument {unknown!r}")
        event: dict[str, Any] = {
            "feedback_id": details.pop("feedback_id", None) or f"{self._prefix}{next(self._number):012x}",
            "trajectory_id": trajectory_id,
            "timestamp": details.pop("timestamp", None) or self._now(),
            "type": type,
            **{name: value for name, value in details.items() if value is not None},
        }
        return self._put(_FEEDBACK, event)

    def counts(self) -> ClientCounts:
        """Return what became of the events so far."""
        queue = self._sender.queue
        return ClientCounts(
            sent=queue.sent,
            refused=queue.refused,
            dropped=queue.dropped,
            invalid=queue.invalid,
            waiting=queue.waiting,
            last_error=self._sender.last_error,
        )

    def flush(self, timeout_s: float = 2.0) -> bool:
        """Wait until nothing waits, or `timeout_s` is over; return whether all was sent or refused."""
        return self._sender.flush(timeout_s)

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

    def _new_sender(self) -> ClientSender:
        return ClientSender(
            self._url, _PATHS, ClientQueue(_PATHS, *self._bounds), ServiceLink(*self._service)
        )

    def _begin_anew(self) -> None:
        """Start with an empty queue in a forked process; a client that was closed stays so."""
        left, self._sender = self._sender, self._new_sender()
        left.leave()
        self._sender.queue.closed = left.queue.closed
        self._prefix, self._number = _new_ids()

    def _put(self, path: str, event: Mapping[str, Any]) -> bool:
        try:
            text = _encode(event)
        except Exception as error:  # noqa: BLE001 - an event may hold objects that raise anything
            return self._discard(f"an event cannot be written as JSON: {type(error).__name__}")
        if len(text) > _EVENT_BYTES:
            return self._discard(f"an event has {len(text)} bytes; at most {_EVENT_BYTES} are sent")
        return self._sender.put(path, text)

    def _discard(self, error: str) -> bool:
        self._sender.queue.count_invalid()
        self._sender.last_error = error
        return False

    def _now(self) -> str:
        """Return the time as ISO 8601; what stays for a second is made once in it."""
        seconds = time.time()
        whole = int(seconds)
        known, text = self._second
        if known != whole:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
            self._second = whole, text
        return f"{text}.{int((seconds - whole) * 1000):03d}Z"

    def _end(self, timeout_s: float | None = None) -> None:
        self._sender.end(self._exit_s if timeout_s is None else timeout_s)

    def _join(self) -> None:
        self._sender.join()


def _new_ids() -> tuple[str, Iterator[int]]:
    """Return what ids of feedback begin with that no other client draws, and their numbers."""
    return str(uuid.uuid4())[:-12], itertools.count(1)


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
