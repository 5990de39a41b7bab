"""Tables on the server: a bucket of keys and values each."""

from __future__ import annotations

import base64
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.nats.consumer import ID_HEADER
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsMessage, NatsRefusal
from pytest_tfgrpo.production.bus.nats.scan import NatsScan
from pytest_tfgrpo.production.bus.nats.streams import bucket_config, provide
from pytest_tfgrpo.production.bus.protocol import check_key
from pytest_tfgrpo.storage.event_store import TableEntry

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_OPERATION, _REMOVED = "KV-Operation", ("DEL", "PURGE")
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
WRONG_LAST = (10071, 10164)
"""Codes of the refusal of what is not the next."""
_NO_MESSAGE = 10037
_LONGEST_S = 60.0
_REMOVED_S = 3600.0
"""How long the mark of a removed key stays for those who watch."""


class NatsTable:
    """See `Table`."""

    def __init__(self, link: NatsLink, name: str) -> None:
        self._link, bucket = link, f"tfgrpo_{name}"
        self._stream, self._prefix = f"KV_{bucket}", f"$KV.{bucket}."
        self._marks: deque[tuple[float, int]] = deque()
        """When this process marked keys as removed, for those who watch, and where."""
        link.run(provide(link, [bucket_config(bucket)]))

    def get(self, key: str) -> tuple[bytes | None, int]:
        """Return value and revision; (None, 0) for a key that has no value."""
        value, revision, _ = self._link.run(self._get(check_key(key)))
        return value, revision

    async def _get(self, key: str) -> tuple[bytes | None, int, int]:
        """Return value, revision, and the sequence of the last message, which may say that there is none."""
        wish = {"last_by_subj": self._prefix + key}
        try:
            found = (await self._link.api(f"STREAM.MSG.GET.{self._stream}", wish))["message"]
        except NatsRefusal as refusal:
            if refusal.code != _NO_MESSAGE:
                raise
            return None, 0, 0
        sequence = int(found["seq"])
        headers = base64.b64decode(found.get("hdrs", "")).decode("latin-1")
        if any(f"{_OPERATION}: {word}" in headers for word in _REMOVED):
            return None, 0, sequence
        return base64.b64decode(found.get("data", "")), sequence, sequence

    def put(self, key: str, value: bytes, revision: int) -> int:
        """Write if `revision` is the key's, and return the new one; raises RevisionConflict."""
        self._link.check_size(len(value), f"the table row {key!r}")
        return self._link.run(self.write(check_key(key), value, revision, {}))

    async def check(self, key: str, revision: int) -> None:
        """Raise RevisionConflict if a key is at another revision."""
        _, found, _ = await self._get(key)
        if found != revision:
            raise _conflict(key, found, revision)

    async def write(self, key: str, value: bytes, revision: int, headers: Mapping[str, str]) -> int:
        """Write if `revision` is the key's, then overwrite what was there."""
        before = revision
        if not revision:  # there may be a mark of a removed one
            _, found, before = await self._get(key)
            if found:
                raise _conflict(key, found, revision)
        # a repeat after a broken connection has the same id, and is answered like the first
        told = {ID_HEADER: uuid.uuid4().hex, EXPECTED: str(before), **headers}
        message = NatsMessage(subject=self._prefix + key, data=value, headers=told)
        try:
            (written,) = await self._link.store([message])
        except NatsRefusal as refusal:
            if refusal.code not in WRONG_LAST:
                raise
            raise _conflict(key, (await self._get(key))[1], revision) from refusal
        if before:
            await erase(self._link, self._stream, [before])
        return written

    def remove(self, key: str, revision: int) -> None:
        """Remove if `revision` is the key's, and the value on disk too; raises RevisionConflict."""
        if not revision:
            self._link.run(self.check(check_key(key), 0))
            return
        mark = self._link.run(self.write(check_key(key), b"", revision, {_OPERATION: "DEL"}))
        now = time.monotonic()
        self._marks.append((now, mark))
        while self._marks[0][0] < now - _REMOVED_S:
            self._link.run(erase(self._link, self._stream, [self._marks.popleft()[1]]))

    def list(self, prefix: str = "") -> dict[str, tuple[bytes, int]]:
        """Return values and revisions by key, of the keys that start with `prefix`."""
        watch = self.watch(prefix)
        try:
            rows: dict[str, tuple[bytes, int]] = {}
            while found := watch.changes(0):
                rows |= {row.key: (row.value, row.revision) for row in found if row.value is not None}
            return dict(sorted(rows.items()))
        finally:
            watch.close()

    def watch(self, prefix: str = "") -> NatsWatch:
        """Return the changes of the keys that start with `prefix`."""
        return NatsWatch(self._link, self._stream, self._prefix, prefix)


def _conflict(key: str, found: int, revision: int) -> RevisionConflict:
    return RevisionConflict(f"the table row {key!r} is at revision {found}, not at {revision}; read it again")


async def erase(link: NatsLink, stream: str, sequences: Iterable[int]) -> int:
    """Overwrite messages on the server's disk; returns how many were there."""
    gone = 0
    for sequence in sequences:
        try:
            await link.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
            gone += 1
        except NatsRefusal as refusal:
            if await _is_there(link, stream, sequence):
                raise refusal
    return gone


async def _is_there(link: NatsLink, stream: str, sequence: int) -> bool:
    try:
        await link.api(f"STREAM.MSG.GET.{stream}", {"seq": sequence})
    except NatsRefusal as refusal:
        if refusal.code != _NO_MESSAGE:
            raise
        return False
    return True


class NatsWatch:
    """See `TableWatch`; for one thread."""

    def __init__(self, link: NatsLink, stream: str, subjects: str, prefix: str) -> None:
        self._link, self._subjects, self._prefix = link, subjects, prefix
        self._first = True
        words = prefix[: prefix.rfind(".") + 1]
        start: dict[str, Json] = {
            "deliver_policy": "last_per_subject",
            "filter_subject": f"{subjects}{words}>",
        }
        self._scan = NatsScan(link, stream, start)

    def changes(self, timeout_s: float) -> list[TableEntry]:
        """Return what changed, at first every row there is; [] after `timeout_s`."""
        until = time.monotonic() + timeout_s
        wait_s = 0.0
        while True:
            got = self._link.run(self._scan.more(wait_s))
            if not self._scan.left:
                first, self._first = self._first, False
            else:
                first = self._first
            if rows := self._rows(got, first):
                return rows
            left = until - time.monotonic()
            if self._scan.left > 0:
                continue
            if left <= 0:
                return []
            wait_s = min(max(left, 0.001), _LONGEST_S)

    def _rows(self, messages: Iterable[Msg], first: bool) -> list[TableEntry]:
        rows: dict[str, TableEntry] = {}
        for message in messages:
            key = message.subject.removeprefix(self._subjects)
            removed = (message.headers or {}).get(_OPERATION) in _REMOVED
            if key.startswith(self._prefix):
                rows.pop(key, None)
                rows[key] = TableEntry(
                    key=key,
                    value=None if removed else message.data,
                    revision=message.metadata.sequence.stream,
                )
        return [row for row in rows.values() if not (first and row.value is None)]

    def close(self) -> None:
        """Watch no longer."""
        self._link.run(self._scan.close())
