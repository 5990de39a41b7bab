"""Attempts that a dataset may draw, in a temporary file, so that memory does not grow with them.

SQLite fills it from the file of the view: a million rows pass no Python.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import ROUNDING
from pytest_tfgrpo.production.training.dataset.bounds import DatasetBounds
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest
from pytest_tfgrpo.production.view.schema import VIEW
from pytest_tfgrpo.production.view.view import LoopView

SPREAD = 0.2
"""Least difference between the best and the worst reward of a group."""
_TABLES = """ATTACH '' AS pool;
    PRAGMA pool.journal_mode = OFF;
    CREATE TABLE pool.domains (name TEXT PRIMARY KEY, suite TEXT);
    CREATE TABLE pool.fitting (task TEXT, seq INTEGER, owner TEXT, total REAL, PRIMARY KEY (task, seq))
        WITHOUT ROWID;
    CREATE TABLE pool.tasks (place BLOB, task TEXT, attempts INTEGER, PRIMARY KEY (place, task))
        WITHOUT ROWID;
    CREATE TABLE pool.drawn (seq INTEGER PRIMARY KEY, task TEXT, total REAL);
    CREATE TABLE pool.gone (seq INTEGER PRIMARY KEY);
    CREATE TABLE pool.attempts (task BLOB, seq INTEGER, head TEXT, body TEXT);"""
_REASON = "!"
"""In front of why an attempt is left out, in place of its task."""
_FILL = """INSERT INTO pool.fitting SELECT CASE
    WHEN t.blocked THEN '!safety_blocked'
    WHEN t.wording IS NULL THEN '!no_prompt'
    WHEN t.turns > :turns THEN '!too_long'
    WHEN t.ended < :start OR t.ended > :end THEN '!other_date'
    WHEN {domains} THEN '!other_domain'
    WHEN {profiles} THEN '!excluded_profile'
    ELSE coalesce('k' || t.task_key, 'w' || t.wording) || x'1f' || {suite} || x'1f' || t.agent || x'1f'
        || coalesce(t.model, '') || x'1f' || coalesce(t.policy_version, '') END,
    t.seq,
    CASE WHEN t.user_ref IS NOT NULL THEN 'u' || t.user_ref
    WHEN t.session IS NOT t.trace_id THEN 's' || t.session END,
    (SELECT total FROM main.rewards WHERE trajectory_id = t.id AND own AND seq <= :rewards
     ORDER BY revision DESC LIMIT 1)
    FROM main.{table} t WHERE {where} ORDER BY 1, 2"""
_SUITE = """coalesce((SELECT suite FROM pool.domains WHERE name = t.agent),
    (SELECT suite FROM pool.domains WHERE name = t.domain), t.domain)"""


class PoolAttempt(NamedTuple):
    """An attempt in the pool."""

    seq: int
    owner: str | None
    """Whose share it counts for; None where neither user nor session is known."""
    total: float


class AttemptPool:
    """A temporary database beside a connection to the view; close it. Methods raise errors of SQLite."""

    def __init__(self, view: LoopView, asked: DatasetRequest) -> None:
        self._asked = asked
        self.db = VIEW.connect(view.path)
        self.db.executescript(_TABLES)

    def close(self) -> None:
        """Remove the file."""
        self.db.close()

    def fill(self, bounds: DatasetBounds, domains: Mapping[str, str]) -> tuple[int, Counter[str]]:
        """Keep the attempts that fit the request; return how many there were, and others by reason."""
        self.db.executemany("INSERT INTO pool.domains VALUES (?, ?)", domains.items())
        for table, where in bounds.tables().items():
            self.db.execute(self._query(table, where, suite=bool(domains)), self._values(bounds))
        return self._aggregate()

    def _query(self, table: str, where: str, *, suite: bool) -> str:
        listed, profiles = self._asked.domains, self._asked.without_profiles
        return _FILL.format(
            table=table,
            where=where,
            suite=_SUITE if suite else "t.domain",
            domains=f"t.domain NOT IN ({_marks('d', listed)})" if listed else "FALSE",
            profiles=f"t.profile IN ({_marks('p', profiles)})" if profiles else "FALSE",
        )

    def _values(self, bounds: DatasetBounds) -> dict[str, object]:
        asked = self._asked
        return {
            **bounds.values(),
            "turns": asked.max_turns,
            "start": asked.start,
            "end": asked.end,
            **{f"d{n}": name for n, name in enumerate(asked.domains)},
            **{f"p{n}": name for n, name in enumerate(asked.without_profiles)},
        }

    def _aggregate(self) -> tuple[int, Counter[str]]:
        """Put the tasks whose attempts differ in an order that the seed draws."""
        seen, left_out, kept = 0, Counter[str](), []
        self.db.execute("BEGIN")
        query = "SELECT task, count(*), count(total), min(total), max(total) FROM pool.fitting GROUP BY task"
        for task, count, rewarded, worst, best in self.db.execute(query):
            seen += count
            if task.startswith(_REASON):
                left_out[task.removeprefix(_REASON)] += count
                continue
            left_out["no_reward"] += count - rewarded
            reason = self.unusable(rewarded, worst, best)
            if reason:
                left_out[reason] += rewarded
                continue
            kept.append((self._place(task), task, rewarded))
            if len(kept) == 1000:
                self.db.executemany("INSERT INTO pool.tasks VALUES (?, ?, ?)", kept)
                kept.clear()
        self.db.executemany("INSERT INTO pool.tasks VALUES (?, ?, ?)", kept)
        return seen, +left_out

    def unusable(self, count: int, worst: float, best: float) -> str:
        """Return why so many attempts with such rewards teach nothing; empty where they do."""
        if count < 2:
            return "single" if count else "no_reward"
        if best - worst < SPREAD - ROUNDING:
            return "no_spread"
        return "low_reward" if self._asked.min_reward is not None and best < self._asked.min_reward else ""

    def _place(self, task: str) -> bytes:
        return _digest(f"{self._asked.seed}\x1f{task}")

    def size(self) -> int:
        """Return how many attempts may be drawn."""
        query = "SELECT coalesce(sum(attempts), 0) FROM pool.tasks"
        gone = self.db.execute("SELECT count(*) FROM pool.gone").fetchone()[0]
        return int(self.db.execute(query).fetchone()[0] - gone)

    def owned(self) -> dict[int, int]:
        """Return how many owners have so many attempts each; nobody known is an owner each time."""
        query = """SELECT n, count(*) FROM (
            SELECT count(*) AS n FROM pool.tasks JOIN pool.fitting USING (task) WHERE total IS NOT NULL
            GROUP BY owner, CASE WHEN owner IS NULL THEN seq END
            ) GROUP BY n"""
        return dict(self.db.execute(query))

    def tasks(self) -> Iterator[tuple[str, int]]:
        """Yield the tasks in their order, with the number of their attempts."""
        yield from self.db.execute("SELECT task, attempts FROM pool.tasks ORDER BY place, task")

    def group(self, task: str) -> list[PoolAttempt]:
        """Return the attempts at a task, in the order of the stream."""
        query = """SELECT seq, owner, total FROM pool.fitting WHERE task = ? AND total IS NOT NULL
            AND seq NOT IN (SELECT seq FROM pool.gone) ORDER BY seq"""
        return [PoolAttempt(*row) for row in self.db.execute(query, (task,))]

    def lose(self, sequences: Iterable[int]) -> None:
        """Leave out attempts that are no longer on the bus."""
        self.db.executemany("INSERT OR IGNORE INTO pool.gone VALUES (?)", ((one,) for one in sequences))


def task_id(task: str) -> bytes:
    """Return the id of a task of the pool, which follows from it alone."""
    return _digest(task)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _marks(letter: str, names: tuple[str, ...]) -> str:
    return ", ".join(f":{letter}{n}" for n in range(len(names)))
