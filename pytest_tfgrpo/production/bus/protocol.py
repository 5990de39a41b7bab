"""What a bus does, whatever it runs on.

Everything is synchronous. One implementation is SQLite, which is; callers are threads (a loop that evaluates,
a command, the thread pool of a service), and an asynchronous caller goes through `asyncio.to_thread`. The
implementation that needs an event loop keeps one in a thread of its own. A bus may be shared by threads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.storage.event_store import BusEvent, EventStore

MAX_EVENT_BYTES = 1_000_000
"""Of an event's data; a server's usual limit of 1 MiB has room for its headers beside them."""
DEDUPE_S = 3600.0
"""How long an id that was stored is not stored again."""
ACK_WAIT_S = 30.0
"""After which an event that was delivered and not acknowledged is delivered again."""
MAX_DELIVERIES = 5
"""After which an event goes to the dead letters."""
MAX_PENDING = 10_000
"""Events that one consumer may have delivered and not acknowledged."""
FETCH_BYTES = 16 << 20
"""Of data that one fetch returns before it stops; at least one event."""

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"[0-9A-Za-z:.+-]{1,64}")
_KEY = re.compile(r"[A-Za-z0-9_=/-]+(\.[A-Za-z0-9_=/-]+)*")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_KEY = 512


class Consumer(Protocol):
    """A durable reader of a stream; workers that open the same name share its events."""

    def fetch(self, limit: int, timeout_s: float) -> list[BusEvent]:
        """Return up to `limit` events, oldest first, as soon as there is one; [] after `timeout_s`.

        Each comes again after its wait, to any worker, until it is acknowledged; an event that would come
        more than `MAX_DELIVERIES` times goes to RL_DEAD instead.
        """
        ...

    def ack(self, events: Sequence[BusEvent]) -> None:
        """Settle events for good; durable when it returns."""
        ...

    def nak(self, events: Sequence[BusEvent], delay_s: float = 0.0) -> None:
        """Give events back, to be delivered again after `delay_s`."""
        ...

    def bury(self, events: Sequence[BusEvent], code: str, message: str) -> None:
        """Move events to RL_DEAD at once."""
        ...

    def lag(self) -> int:
        """Return how many events wait or are delivered and not acknowledged."""
        ...


class Bus(EventStore, Protocol):
    """Streams of events, and tables. Every method raises BusError where the bus fails."""

    def consumer(self, stream: str, name: str, *, ack_wait_s: float = ACK_WAIT_S) -> Consumer:
        """Return a durable consumer, which starts with the oldest event when it is made."""
        ...

    def replay(
        self, stream: str, *, since_sequence: int = 1, since_time: float | None = None
    ) -> Iterator[BusEvent]:
        """Yield the events stored up to now, oldest first, from a sequence or a time of arrival on."""
        ...

    def last(self, stream: str) -> int:
        """Return the sequence of the newest event; 0 if there was none."""
        ...

    def delete(self, stream: str, ids: Collection[str]) -> int:
        """Overwrite the data of events on disk; return how many were there."""
        ...

    def close(self) -> None:
        """Finish what was published, and let go of file or server."""
        ...


def check_events(events: Sequence[BusEvent], subjects: Mapping[str, object]) -> None:
    """Raise BusError for an event that no bus takes; `subjects` are those that a stream takes."""
    good = (
        {event.subject for event in events} <= subjects.keys()
        and _are_ids([event.id for event in events])
        and all(_TIME.fullmatch(time) for time in {event.time for event in events})
        and {type(event.data) for event in events} <= {bytes}
        and max([len(event.data) for event in events], default=0) <= MAX_EVENT_BYTES
    )
    if not good:  # all at once is ten times faster; now which of them it is
        for event in events:
            _check_event(event, subjects)


def _are_ids(ids: Sequence[str]) -> bool:
    whole = "".join(ids)
    digits, dashes = whole.replace("-", ""), "-" * len(ids)
    try:
        return (
            {len(one) for one in ids} <= {36}
            and all(whole[place::36] == dashes for place in (8, 13, 18, 23))
            and bytes.fromhex(digits).hex() == digits
            and len(digits) == 32 * len(ids)
        )
    except ValueError:
        return False


def _check_event(event: BusEvent, subjects: Mapping[str, object]) -> None:
    if event.subject not in subjects:
        raise BusError(f"event {event.id!r}: no stream takes the subject {event.subject!r}")
    if _ID.fullmatch(event.id) is None:
        raise BusError(f"the event id {event.id!r} is no UUID in lower case; give it one")
    if _TIME.fullmatch(event.time) is None:
        raise BusError(f"event {event.id!r}: the time {event.time!r} is not RFC 3339")
    if type(event.data) is not bytes:
        raise BusError(f"event {event.id!r}: the data is {type(event.data).__name__}, not bytes; encode it")
    if len(event.data) > MAX_EVENT_BYTES:
        raise BusError(
            f"event {event.id!r} has {len(event.data):,} bytes of data, more than {MAX_EVENT_BYTES:,}; "
            "cut its texts"
        )


def check_key(key: str) -> str:
    """Return a key of a table; raises BusError for one that some bus cannot hold."""
    if len(key) > _MAX_KEY or _KEY.fullmatch(key) is None:
        raise BusError(
            f"the table key {key[:100]!r} is not words of letters, digits and -/_= joined by dots, of at "
            f"most {_MAX_KEY} characters"
        )
    return key


def check_name(name: str, what: str) -> str:
    """Return the name of a consumer or table; raises BusError for one that some bus cannot hold."""
    if _NAME.fullmatch(name) is None:
        raise BusError(f"the {what} {name!r} is not 1 to 64 letters, digits, _ and -")
    return name
