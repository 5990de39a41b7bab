"""Which ids a stream stored of late: in memory, from the file, which other processes write too."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from pytest_tfgrpo.production.bus.embedded.blocks import ID_BYTES
from pytest_tfgrpo.production.bus.embedded.file import blocks
from pytest_tfgrpo.production.bus.protocol import DEDUPE_S

_PARTS = 4
"""Generations of the window; the oldest goes as a whole."""


class RecentIds:
    """The ids of one stream within `DEDUPE_S`, about 140 bytes of memory each.

    A generation is dropped once its newest id is too old; an id in it may be older: hits are looked up.
    """

    def __init__(self, stream: str) -> None:
        self._table = blocks(stream)
        self._known = -1
        """Sequence up to which the file has been read; -1 before the first look."""
        self._generations: list[tuple[float, dict[bytes, int]]] = []
        """When each began, newest last."""

    def catch_up(self, db: sqlite3.Connection, now: float) -> None:
        """Learn what this and other processes have stored since the last look."""
        if self._known < 0:
            self._known = self._start(db, now) - 1
        query = f"SELECT first, count, ids FROM {self._table} WHERE first > ? ORDER BY first"
        for first, count, ids in db.execute(query, (self._known,)):
            newest = self._newest(now)
            for n in range(count):
                newest[ids[n * ID_BYTES : (n + 1) * ID_BYTES]] = first + n
            self._known = first + count - 1

    def _start(self, db: sqlite3.Connection, now: float) -> int:
        """Return the sequence from which on ids are recent."""
        start = 1
        for first, count, at in db.execute(f"SELECT first, count, at FROM {self._table} ORDER BY first DESC"):
            start = max(start, first + count)
            if at < now - DEDUPE_S:
                break
            start = first
        return start

    def _newest(self, now: float) -> dict[bytes, int]:
        if not self._generations or not 0 <= now - self._generations[-1][0] < DEDUPE_S / _PARTS:
            oldest = now - DEDUPE_S * (1 + 1 / _PARTS)
            self._generations = [one for one in self._generations if one[0] > oldest]
            self._generations.append((now, {}))
        return self._generations[-1][1]

    def has_none_of(self, ids: Sequence[bytes]) -> bool:
        """Return whether no id is known; if it is False, `find` says which are."""
        return all(generation.keys().isdisjoint(ids) for _, generation in self._generations)

    def add(self, ids: Mapping[bytes, int], last: int, now: float) -> None:
        """Add what this process has stored, up to the sequence `last`."""
        self._newest(now).update(ids)
        self._known = last

    def find(self, db: sqlite3.Connection, event_id: bytes, now: float) -> int | None:
        """Return the sequence under which an id was stored within the window."""
        for _, generation in reversed(self._generations):
            if (sequence := generation.get(event_id)) is not None:
                query = f"SELECT at FROM {self._table} WHERE first <= ? ORDER BY first DESC LIMIT 1"
                row = db.execute(query, (sequence,)).fetchone()
                # rows that retention took are within the window only where very many came
                return sequence if row is None or row[0] > now - DEDUPE_S else None
        return None
