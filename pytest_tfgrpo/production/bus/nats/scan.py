"""Reading a stream without taking from it: for replays, lists and watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsRefusal
from pytest_tfgrpo.production.bus.protocol import FETCH_BYTES

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_AT_ONCE = 1000
_IDLE_S = 300
"""After which the server forgets a reader that has gone; one that has not begins again where it was."""


class NatsScan:
    """A reader that goes on where it was when server or connection come back; in the loop's thread."""

    def __init__(self, link: NatsLink, stream: str, start: Mapping[str, Json]) -> None:
        """`start` says where to begin, in the server's words, and may filter."""
        self._link, self._stream, self._start = link, stream, dict(start)
        self._consumer = ""
        self._breaks = 0
        self._read = 0
        """Messages of this consumer."""
        self.seen = 0
        """Sequence of the last message."""
        self.left = -1
        """Messages after the last one, by the server; -1 before the first look."""

    async def _open(self) -> None:
        self._breaks = self._link.breaks
        start = dict(self._start)
        if self.seen:
            start |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self.seen + 1}
            start.pop("opt_start_time", None)
        config = {
            **start,
            "ack_policy": "none",
            "mem_storage": True,
            "inactive_threshold": _IDLE_S * 10**9,
        }
        wish = {"stream_name": self._stream, "config": config}
        made = await self._link.api(f"CONSUMER.CREATE.{self._stream}", wish)
        self._consumer, self._read, self.left = made["name"], 0, int(made["num_pending"])

    async def more(self, wait_s: float = 0.0) -> list[Msg]:
        """Return the next messages; [] where there are none yet."""

        async def attempt() -> list[Msg]:
            if not self._consumer or self._breaks != self._link.breaks:  # a server that ends forgets readers
                await self._open()
            if wait_s > 0 and not self.left:
                got, answered = await self._pull(1, wait_s)
            else:
                got, answered = await self._pull(_AT_ONCE, 0.0)
            if not answered and not got:
                self._consumer = ""
                raise TimeoutError(f"no answer about {self._stream}")
            return got

        return await self._link.patiently(attempt)

    async def _pull(self, batch: int, wait_s: float) -> tuple[list[Msg], bool]:
        got, answered = await self._link.pull(self._stream, self._consumer, batch, wait_s, FETCH_BYTES)
        whole = []
        for message in got:
            told = message.metadata
            if told.sequence.consumer != self._read + 1:  # some were lost on the way
                self._consumer = ""
                break
            self._read += 1
            self.seen, self.left = told.sequence.stream, told.num_pending
            whole.append(message)
        if not whole and answered and wait_s == 0:
            self.left = 0
        return whole, answered and (bool(whole) or not got)

    async def close(self) -> None:
        """Let the server forget the reader."""
        if self._consumer:
            try:
                await self._link.api(f"CONSUMER.DELETE.{self._stream}.{self._consumer}")
            except NatsRefusal:
                return  # the server was faster
