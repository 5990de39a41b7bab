"""Buses for tests: where they are kept, a clock that tests move, and events."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.nats.bus import open_nats
from pytest_tfgrpo.production.bus.nats.link import NatsLink
from pytest_tfgrpo.production.bus.protocol import Bus, Consumer
from pytest_tfgrpo.production.bus.streams import STREAMS, StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent
from support.nats_server import NatsServer

SUBJECT, STREAM = "agent.rl.trajectory.v1", "RL_TRAJECTORIES"
REWARD, REWARDS = "agent.rl.reward.v1", "RL_REWARDS"
SHORT = 0.15
"""Seconds before an event comes again, for tests that wait for that."""


class Clock:
    """A clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class BusPlace(Protocol):
    """Where a bus is; each opening is like another process's."""

    folder: Path
    """What the bus writes is in here."""

    def open(self) -> Bus: ...


class EmbeddedPlace:
    """A file."""

    def __init__(self, folder: Path, streams: tuple[StreamSpec, ...] = STREAMS) -> None:
        self.folder = folder
        self.path = folder / "bus.db"
        self.clock: Callable[[], float] | None = None
        self._streams = streams
        self._open: list[Bus] = []

    def open(self) -> Bus:
        bus: Bus = (
            open_embedded(self.path, self._streams, self.clock)
            if self.clock
            else open_embedded(self.path, self._streams)
        )
        self._open.append(bus)
        return bus

    def close(self) -> None:
        for bus in self._open:
            bus.close()


class NatsPlace:
    """A server that tests share; each leaves it empty."""

    def __init__(self, server: NatsServer) -> None:
        self.server, self.folder = server, server.folder
        self._open: list[Bus] = []

    def open(self) -> Bus:
        self._open.append(open_nats(self.server.url, patience_s=100))
        return self._open[-1]

    def close(self) -> None:
        while self._open:
            self._open.pop().close()
        link = NatsLink(self.server.url, {}, 10)
        try:
            for name in link.run(link.api("STREAM.NAMES"))["streams"] or []:
                link.run(link.api(f"STREAM.DELETE.{name}"))
        finally:
            link.close()


def event(number: int, data: bytes = b"", subject: str = SUBJECT) -> BusEvent:
    """Return the event with a number, always the same id."""
    return BusEvent(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"event {number}")),
        subject=subject,
        time="2026-01-01T00:00:00Z",
        data=data or b"event %d" % number,
    )


def events(count: int, start: int = 0) -> list[BusEvent]:
    """Return so many different events."""
    return [event(number) for number in range(start, start + count)]


def drain(consumer: Consumer, timeout_s: float = 0.0) -> Iterator[BusEvent]:
    """Yield and acknowledge what a consumer gets, from `timeout_s` on, until nothing is left."""
    while found := consumer.fetch(100, timeout_s):
        yield from found
        consumer.ack(found)
        timeout_s = 0.0


def texts(found: list[BusEvent]) -> list[str]:
    """Return the data of events."""
    return [one.data.decode() for one in found]


def bytes_in(folder: Path, needle: bytes) -> list[str]:
    """Return the names of the files under `folder` that hold some bytes."""
    return [path.name for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]
