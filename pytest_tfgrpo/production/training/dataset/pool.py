"""Attempts that a dataset may draw, in a temporary file, so that memory does not grow with them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import groupby, islice
from typing import NamedTuple

from pytest_tfgrpo.production.training.dataset.bounds import AttemptRow
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest

_AT_ONCE = 5000
_REMEMBERED = 50_000
"""Tasks whose ids are not computed again."""
_ID_BYTES = 8
_TABLES = """CREATE TABLE pool (place BLOB, task BLOB, seq INTEGER, owner TEXT, total REAL);
    CREATE TABLE ordered (place BLOB, task BLOB, seq INTEGER, owner TEXT, total REAL);
    CREATE TABLE drawn (seq INTEGER PRIMARY KEY, task BLOB, total REAL, owned INTEGER);
    CREATE TABLE gone (seq INTEGER PRIMARY KEY);
    CREATE TABLE attempts (task BLOB, seq INTEGER, head TEXT, body TEXT);"""


class PoolAttempt(NamedTuple):
    """An attempt in the pool."""

    seq: int
    owner: str | None
    """Whose share it counts for; None where neither user nor session is known."""
    total: float


class AttemptPool:
    """A temporary database; close it."""

    def __init__(self, asked: DatasetRequest, domains: Mapping[str, str]) -> None:
        self._asked, self._domains = asked, domains
        self._placed = lru_cache(maxsize=_REMEMBERED)(partial(_placed, f"{asked.seed}:".encode()))
        self.db = sqlite3.connect("", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = OFF")
        self.db.executescript(_TABLES)
        self.db.execute("BEGIN")

    def close(self) -> None:
        """Remove the file."""
        self.db.close()

    def fill(self, rows: Iterable[AttemptRow]) -> tuple[int, Counter[str]]:
        """Keep the attempts that fit the request; return how many there were, and others by reason."""
        seen, left_out = 0, Counter[str]()
        rows = iter(rows)
        while some := list(islice(rows, _AT_ONCE)):
            seen += len(some)
            kept = []
            for row in some:
                reason = self._reason(row)
                if reason:
                    left_out[reason] += 1
                else:
                    kept.append(self._entry(row))
            self.db.executemany("INSERT INTO pool VALUES (?, ?, ?, ?, ?)", kept)
        self.db.execute("INSERT INTO ordered SELECT * FROM pool ORDER BY place, task, seq")
        self.db.execute("DROP TABLE pool")
        return seen, left_out

    def _reason(self, row: AttemptRow) -> str:
        """Return why an attempt is left out; empty where it is not."""
        asked = self._asked
        if row.blocked:
            return "safety_blocked"
        if row.total is None:
            return "no_reward"
        if row.wording is None:
            return "no_prompt"
        if asked.max_turns is not None and row.turns > asked.max_turns:
            return "too_long"
        if (asked.start and row.ended < asked.start) or (asked.end and row.ended > asked.end):
            return "other_date"
        if asked.domains and row.domain not in asked.domains:
            return "other_domain"
        return "excluded_profile" if row.profile in asked.without_profiles and row.profile else ""

    def _entry(self, row: AttemptRow) -> tuple[bytes, bytes, int, str | None, float | None]:
        domain = self._domains.get(row.agent) or self._domains.get(row.domain, row.domain)
        keyed = row.task_key is not None
        place, task = self._placed(
            domain, row.agent, row.model, row.policy_version, keyed, row.task_key if keyed else row.wording
        )
        owner = None
        if row.user_ref is not None:
            owner = "u" + row.user_ref
        elif row.session != row.trace_id:
            owner = "s" + row.session
        return place, task, row.seq, owner, row.total

    def size(self) -> int:
        """Return how many attempts fit the request."""
        return int(self.db.execute("SELECT count(*) FROM ordered").fetchone()[0])

    def owned(self) -> dict[int, int]:
        """Return how many owners have so many attempts each; nobody known is an owner each time."""
        query = """SELECT n, count(*) FROM (SELECT count(*) AS n FROM ordered
            GROUP BY owner, CASE WHEN owner IS NULL THEN seq END) GROUP BY n"""
        return dict(self.db.execute(query))

    def groups(self) -> Iterator[tuple[bytes, list[PoolAttempt]]]:
        """Yield the attempts at each task, in an order that the seed draws."""
        query = """SELECT task, seq, owner, total FROM ordered
            WHERE seq NOT IN (SELECT seq FROM gone) ORDER BY rowid"""
        for task, rows in groupby(self.db.execute(query), key=lambda row: row[0]):
            yield task, [PoolAttempt(*row[1:]) for row in rows]

    def lose(self, sequences: Iterable[int]) -> None:
        """Leave out attempts that are no longer on the bus."""
        self.db.executemany("INSERT OR IGNORE INTO gone VALUES (?)", ((one,) for one in sequences))


def _placed(seed: bytes, *parts: str | bool | None) -> tuple[bytes, bytes]:
    """Return where a task comes in the draw, and its id."""
    task = _digest(json.dumps(parts).encode())
    return _digest(seed + task), task


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_ID_BYTES).digest()
