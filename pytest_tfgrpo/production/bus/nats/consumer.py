"""Durable consumers on the server."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_tfgrpo.production.bus.dead_letters import MAX_DELIVERIES_CODE, died
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsMessage
from pytest_tfgrpo.production.bus.protocol import FETCH_BYTES, MAX_DELIVERIES, MAX_PENDING
from pytest_tfgrpo.storage.event_store import BusEvent

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ID_HEADER, TIME_HEADER = "Nats-Msg-Id", "Tfgrpo-Time"
_SPACE = uuid.UUID("0c0de5ab-2f0e-5c59-8f53-5a7d1f9a8d10")
_LONGEST_S = 60.0
"""That one request waits at the server."""


def event_of(message: Msg, stream: str, *, consumed: bool) -> BusEvent:
    """Return the event of a message, which may be another program's, with an id from its place then."""
    told, headers = message.metadata, message.headers or {}
    event_id = headers.get(ID_HEADER, "")
    try:
        event_id = str(uuid.UUID(event_id))
    except ValueError:
        event_id = str(uuid.uuid5(_SPACE, f"{stream}/{told.sequence.stream}"))
    arrived = told.timestamp.timestamp()
    when = headers.get(TIME_HEADER) or datetime.fromtimestamp(arrived, UTC).isoformat()
    return BusEvent(
        id=event_id,
        subject=message.subject,
        time=when,
        data=message.data,
        sequence=told.sequence.stream,
        attempts=told.num_delivered or 0 if consumed else 0,
        arrived=arrived,
        receipt=message.reply if consumed else "",
    )


def message_of(event: BusEvent, headers: Mapping[str, str] | None = None) -> NatsMessage:
    """Return what stores an event."""
    told = {ID_HEADER: event.id, TIME_HEADER: event.time, **(headers or {})}
    return NatsMessage(subject=event.subject, data=event.data, headers=told)


class NatsConsumer:
    """See `Consumer`."""

    def __init__(
        self,
        link: NatsLink,
        stream: str,
        name: str,
        ack_wait_s: float,
        publish: Callable[[Sequence[BusEvent]], Awaitable[object]],
    ) -> None:
        self._link, self._stream, self._name, self._publish = link, stream, name, publish
        self._one = threading.Lock()
        config = {
            "durable_name": name,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(ack_wait_s * 1e9),
            "max_deliver": -1,  # who fetches counts: the server would drop the event without a trace
            "max_ack_pending": MAX_PENDING,
        }
        wish = {"stream_name": stream, "config": config}
        link.run(link.api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", wish))

    def fetch(self, limit: int, timeout_s: float) -> list[BusEvent]:
        """Return up to `limit` events, oldest first, as soon as there is one; [] after `timeout_s`."""
        until = time.monotonic() + timeout_s
        wait_s = 0.0
        with self._one:
            while True:
                events, answered = self._link.run(self._fetch(limit, wait_s))
                if events:
                    return events
                left = until - time.monotonic()
                if left <= 0:
                    return []
                if not answered:
                    time.sleep(min(left, 0.1))
                wait_s = min(max(left, 0.001), _LONGEST_S)

    async def _fetch(self, limit: int, wait_s: float) -> tuple[list[BusEvent], bool]:
        batch = 1 if wait_s else limit
        got, answered = await self._link.pull(self._stream, self._name, batch, wait_s, FETCH_BYTES)
        if got and wait_s and limit > 1:
            more, _ = await self._link.pull(self._stream, self._name, limit - 1, 0.0, FETCH_BYTES)
            got += more
        events: list[BusEvent] = []
        spent: list[BusEvent] = []
        for message in got:
            event = event_of(message, self._stream, consumed=True)
            (spent if event.attempts > MAX_DELIVERIES else events).append(event)
        for event in spent:
            await self._bury(
                [event], MAX_DELIVERIES_CODE, "it was delivered and never settled", MAX_DELIVERIES
            )
        return events, answered

    async def _bury(
        self, events: Sequence[BusEvent], code: str, message: str, attempts: int | None = None
    ) -> None:
        letters = [died(event, self._stream, self._name, code, message, attempts) for event in events]
        await self._publish(letters)
        await self._link.settle([event.receipt for event in events], b"+TERM")

    def ack(self, events: Sequence[BusEvent]) -> None:
        """Settle events for good."""
        self._link.run(self._link.settle([event.receipt for event in events], b"+ACK"))

    def nak(self, events: Sequence[BusEvent], delay_s: float = 0.0) -> None:
        """Give events back, to be delivered again after `delay_s`; settled ones stay so."""
        delay = json.dumps({"delay": int(delay_s * 1e9)}).encode()
        word = b"-NAK " + delay if delay_s > 0 else b"-NAK"
        self._link.run(self._link.settle([event.receipt for event in events], word))

    def bury(self, events: Sequence[BusEvent], code: str, message: str) -> None:
        """Move events to RL_DEAD at once."""
        self._link.run(self._bury(events, code, message))

    def lag(self) -> int:
        """Return how many events wait or are delivered and not acknowledged."""
        told = self._link.run(self._link.api(f"CONSUMER.INFO.{self._stream}.{self._name}"))
        return int(told["num_pending"]) + int(told["num_ack_pending"])
