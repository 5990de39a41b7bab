"""Chains on the server: a record is stored if the one that it follows is still the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pytest_tfgrpo.production.bus.chain import linked
from pytest_tfgrpo.production.bus.nats.consumer import event_of, message_of
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsRefusal
from pytest_tfgrpo.production.bus.nats.scan import NatsScan
from pytest_tfgrpo.production.bus.nats.table import EXPECTED, WRONG_LAST
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent


class NatsChains:
    """Appends to the streams that are chained; in the loop's thread."""

    def __init__(self, link: NatsLink, streams: Mapping[str, StreamSpec]) -> None:
        """`streams` are by subject."""
        self._link, self._streams = link, streams
        self._one = asyncio.Lock()
        """Of this process; others are noticed by the server."""

    async def append(self, event: BusEvent) -> int:
        """Return the sequence under which a record is stored, after all that others stored meanwhile."""
        async with self._one:
            while True:
                newest = await self._newest(self._streams[event.subject].name)
                last = 0 if newest is None else newest.sequence
                try:  # a repeat has the same id, and is answered like the first, whatever is newest
                    message = message_of(linked(event, newest), {EXPECTED: str(last)})
                    return (await self._link.store([message]))[0]
                except NatsRefusal as refusal:
                    if refusal.code not in WRONG_LAST:
                        raise

    async def _newest(self, stream: str) -> BusEvent | None:
        scan = NatsScan(self._link, stream, {"deliver_policy": "last"})
        try:
            found = await scan.more()
        finally:
            await scan.close()
        return event_of(found[-1], stream, consumed=False) if found else None
