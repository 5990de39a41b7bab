"""The bus on NATS JetStream, for several machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.chain import check_records
from pytest_tfgrpo.production.bus.nats.chains import NatsChains
from pytest_tfgrpo.production.bus.nats.consumer import NatsConsumer, event_of, message_of
from pytest_tfgrpo.production.bus.nats.link import PATIENCE_S, NatsLink
from pytest_tfgrpo.production.bus.nats.scan import NatsScan
from pytest_tfgrpo.production.bus.nats.streams import provide, stream_config
from pytest_tfgrpo.production.bus.nats.table import NatsTable, erase
from pytest_tfgrpo.production.bus.protocol import ACK_WAIT_S, check_events, check_key, check_name
from pytest_tfgrpo.production.bus.streams import STREAMS, StreamSpec, by_subject, named
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, TablePut


def open_nats(
    url: str,
    streams: Sequence[StreamSpec] = STREAMS,
    options: Mapping[str, object] | None = None,
    patience_s: float = PATIENCE_S,
) -> NatsBus:
    """Return the bus on the server at `url`, or several joined by commas; `options` go to `nats.connect`.

    Streams that are missing are made. Raises BusError, which lists how others differ.
    """
    link = NatsLink(url, options or {}, patience_s)
    try:
        link.run(provide(link, [stream_config(stream) for stream in streams]))
    except BaseException:
        link.close()
        raise
    return NatsBus(link, streams)


class NatsBus:
    """See `Bus`."""

    atomic = False

    def __init__(self, link: NatsLink, streams: Sequence[StreamSpec]) -> None:
        self._link, self._streams = link, streams
        self._subjects = by_subject(streams)
        self._tables: dict[str, NatsTable] = {}
        self._chains = NatsChains(link, self._subjects)

    def publish(self, events: Sequence[BusEvent], puts: Sequence[TablePut] = ()) -> list[int]:
        """Store events, then rows of the table ``state``; returns the sequences."""
        check_events(events, self._subjects)
        check_records(events, self._subjects)
        if largest := max((len(event.data) for event in events), default=0):
            self._link.check_size(largest, "an event")
        if not puts:
            return self._link.run(self._publish(events))
        return self._link.run(self._publish_both(events, puts, self.table(STATE)))

    async def _publish(self, events: Sequence[BusEvent]) -> list[int]:
        """Store events, those of chains first."""
        chained = [self._subjects[event.subject].chained for event in events]
        records = [
            await self._chains.append(event) for event, one in zip(events, chained, strict=True) if one
        ]
        others = await self._link.store(
            [message_of(event) for event, one in zip(events, chained, strict=True) if not one]
        )
        of_chain, of_others = iter(records), iter(others)
        return [next(of_chain if one else of_others) for one in chained]

    async def _publish_both(
        self, events: Sequence[BusEvent], puts: Sequence[TablePut], table: NatsTable
    ) -> list[int]:
        for put in puts:
            await table.check(check_key(put.key), put.revision)
        sequences = await self._publish(events)
        for put in puts:
            await table.write(put.key, put.value, put.revision, {})
        return sequences

    def consumer(self, stream: str, name: str, *, ack_wait_s: float = ACK_WAIT_S) -> NatsConsumer:
        """Return a durable consumer, which starts with the oldest event when it is made."""
        named(self._streams, stream)
        return NatsConsumer(self._link, stream, check_name(name, "consumer"), ack_wait_s, self._publish)

    def replay(
        self, stream: str, *, since_sequence: int = 1, since_time: float | None = None
    ) -> Iterator[BusEvent]:
        """Yield the events stored up to now, oldest first, from a sequence or a time of arrival on."""
        start: dict[str, Json] = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(since_sequence, 1),
        }
        if since_time is not None:
            since = datetime.fromtimestamp(since_time, UTC).isoformat(timespec="microseconds")
            start = {"deliver_policy": "by_start_time", "opt_start_time": since.replace("+00:00", "Z")}
        last = self.last(stream)
        return self._events(stream, start, since_sequence, last)

    def _events(
        self, stream: str, start: Mapping[str, Json], since: int, last: int, **more: Json
    ) -> Iterator[BusEvent]:
        scan = NatsScan(self._link, stream, {**start, **more})
        try:
            while scan.left and scan.seen < last:
                for message in self._link.run(scan.more()):
                    event = event_of(message, stream, consumed=False)
                    if since <= event.sequence <= last:
                        yield event
        finally:
            self._link.run(scan.close())

    def last(self, stream: str) -> int:
        """Return the sequence of the newest event; 0 if there was none."""
        name = named(self._streams, stream).name
        return int(self._link.run(self._link.api(f"STREAM.INFO.{name}"))["state"]["last_seq"])

    def delete(self, stream: str, ids: Collection[str]) -> int:
        """Overwrite events on the server's disk; returns how many were there."""
        wanted = set(ids)
        start: dict[str, Json] = {"deliver_policy": "all"}
        found = self._events(stream, start, 1, self.last(stream), headers_only=True)
        sequences = [event.sequence for event in found if event.id in wanted]
        return self._link.run(erase(self._link, stream, sequences))

    def table(self, name: str) -> NatsTable:
        """Return a table, which is made where it is missing."""
        check_name(name, "table")
        if name not in self._tables:
            self._tables[name] = NatsTable(self._link, name)
        return self._tables[name]

    def close(self) -> None:
        """Let go of the server."""
        self._link.close()
