"""What the streams say, in a local file that can be queried: a cache, which any process fills.

It has no texts. Deleting it loses nothing: it is filled again from the bus.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from pytest_tfgrpo.core.events import EventRefusal
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.dropped_traces import PREFIX as DROPPED
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.view.removal import owned, remove_before, remove_owned, remove_traces
from pytest_tfgrpo.production.view.rows import Columns, row_of
from pytest_tfgrpo.production.view.schema import TABLES, VIEW, open_view_file
from pytest_tfgrpo.storage.database import transaction
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, change

TRAJECTORIES, FEEDBACKS, REWARDS = "RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS"
TRAINING, DEPLOYMENTS = "RL_TRAINING", "RL_DEPLOYMENTS"
STREAM_TABLES: Mapping[str, str] = {
    TRAJECTORIES: "trajectories",
    FEEDBACKS: "feedback",
    REWARDS: "rewards",
    TRAINING: "training",
    DEPLOYMENTS: "deployments",
    "RL_DEAD": "dead",
    "RL_AUDIT": "audit",
}
"""The table of each stream that the view reads, in the order in which it reads them."""
NO_TRAJECTORY = "no_trajectory"
"""Why feedback is dead whose trajectory never came."""
HISTORY = "history"
"""Key of the evaluator's history, which names trajectories."""
FORGET = "forget"
"""Action of the audit event after which other machines' views begin again."""
_AT_ONCE = 2000
"""Events of one transaction."""
_PRUNE_S = 600.0
"""How often what the streams have let go of is taken out."""
_LOOK_S = 5.0
"""How often traces that opted out are looked for."""


class LoopView:
    """Rows by trajectory, and counts; threads may share it. Methods raise BusError."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Open the file at `path`, which is made where it is missing."""
        self.path = path
        self._db = open_view_file(path)
        self._lock = threading.RLock()
        self._clock = clock
        self._checked = False
        """Whether the file was compared with the bus."""
        self._pruned = self._looked = float("-inf")
        self._dropped: set[str] = set()
        """Traces that opted out, whose trajectories are gone."""

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    # filling

    def catch_up(self, bus: Bus) -> int:
        """Read what is new on the bus; return how many events that were."""
        with self._lock:
            if not self._checked:
                self._check(bus)
            found, generation = 0, -1
            while generation != self.generation:  # emptied meanwhile: begin again
                generation = self.generation
                for stream in STREAM_TABLES:
                    while read := self._read_on(bus, stream):
                        found += read
            now = self._clock()
            if now - self._pruned >= _PRUNE_S:
                self._prune(bus)
                self._pruned, self._dropped = now, set()
            if now - self._looked >= _LOOK_S:
                self._remove_dropped(bus)
                self._looked = now
            return found

    def _check(self, bus: Bus) -> None:
        """Begin again where the file belongs to another bus."""
        identity = _identity(bus)
        behind = any(bus.last(stream) < self.position(stream) for stream in STREAM_TABLES)
        if self.meta("bus") != identity or behind:
            self.reset(bus.last("RL_AUDIT"))
            self.set_meta("bus", identity)
        self._checked = True

    def _read_on(self, bus: Bus, stream: str) -> int:
        last, forgotten = bus.last(stream), 0
        if last <= self.position(stream):
            return 0
        with self.transaction() as db:
            position, at = self._position(stream)
            events = list(islice(bus.replay(stream, since_sequence=position + 1), _AT_ONCE))
            for event in events:
                at = max(at, event.arrived)
                forgotten = max(forgotten, self._keep(db, stream, event, at))
            newest = events[-1].sequence if events else 0
            position = newest if len(events) == _AT_ONCE else max(position, newest, last)
            db.execute("INSERT OR REPLACE INTO streams VALUES (?, ?, ?)", (stream, position, at))
        if forgotten:
            self.reset(forgotten)
        return len(events)

    def _keep(self, db: sqlite3.Connection, stream: str, event: BusEvent, at: float) -> int:
        """Keep an event; returns its sequence if it says that another machine forgot something."""
        row = row_of(event, at)
        if isinstance(row, EventRefusal):
            said = (stream, event.sequence, at, row.fault, row.pointer, row.message[:200])
            db.execute("INSERT OR IGNORE INTO refused VALUES (?, ?, ?, ?, ?, ?)", said)
            return 0
        columns = row.columns
        event_id = columns.pop("event_id") if row.table in ("dead", "audit") else ""
        if row.table in ("feedback", "rewards"):
            columns["orphan"] = int(not columns.get("own") and not self._has(db, columns["trajectory_id"]))
        added = _insert(db, row.table, columns)
        if row.table == "trajectories" and added:
            for table in ("feedback", "rewards"):
                db.execute(
                    f"UPDATE {table} SET orphan = 0 WHERE orphan AND trajectory_id = ?", (columns["id"],)
                )
        elif row.table == "dead" and columns["code"] == NO_TRAJECTORY:
            for table in ("feedback", "rewards"):
                db.execute(f"UPDATE {table} SET dead = 1 WHERE event_id = ?", (event_id,))
        elif row.table == "audit" and columns["action"] == FORGET and event.sequence > self._forgets_known():
            if not self.meta(f"forget.{event_id}"):
                return event.sequence
            self._end_history()
        return 0

    def _end_history(self) -> None:
        """Have the evaluator build its history again, within a transaction."""
        self.set_meta("generation", str(self.generation + 1))
        self.set_meta(HISTORY, "")

    @staticmethod
    def _has(db: sqlite3.Connection, trajectory_id: str) -> bool:
        row = db.execute("SELECT 1 FROM trajectories WHERE id = ?", (trajectory_id,)).fetchone()
        return row is not None

    def _forgets_known(self) -> int:
        return int(self.meta("forgets_known") or 0)

    def _prune(self, bus: Bus) -> None:
        for stream, table in STREAM_TABLES.items():
            first = next((event.sequence for event in bus.replay(stream)), bus.last(stream) + 1)
            first = min(first, self.position(stream) + 1)
            with self.transaction() as db:
                remove_before(db, stream, table, first)

    def _remove_dropped(self, bus: Bus) -> None:
        """Take out trajectories whose traces opted out after they were published."""
        rows = bus.table(STATE).list(DROPPED)
        traces = {key.removeprefix(DROPPED) for key in rows} - self._dropped
        if traces:
            with self.transaction() as db:
                found = remove_traces(db, traces)
            if found:
                self._overwrite()
            self._dropped |= traces

    def reset(self, forgets_known: int = 0) -> None:
        """Empty the file, so that it is filled again; forget events up to a sequence are known then."""
        with self._lock, self.transaction() as db:
            generation, bus = self.generation + 1, self.meta("bus")
            for table in TABLES:
                db.execute(f"DELETE FROM {table}")
            self.set_meta("generation", str(generation))
            self.set_meta("forgets_known", str(forgets_known))
            self.set_meta("bus", bus)
        self.shrink()

    def shrink(self) -> None:
        """Overwrite on disk what was deleted."""
        with self._lock, VIEW.advised(self.path):
            self._db.execute("VACUUM")
            self._overwrite()

    def _overwrite(self) -> None:
        """Empty the write-ahead log; what was deleted is overwritten in the file itself."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def owned(self, whose: str, identity: str) -> list[tuple[str, str | None]]:
        """Return ids and traces of the trajectories of a session, or of a user by pseudonym."""
        with self._lock, VIEW.advised(self.path):
            return owned(self._db, whose, identity)

    def forget(
        self, whose: str, identity: str, ids: Collection[str], gone: Mapping[str, Sequence[int]]
    ) -> None:
        """Overwrite what a session or user owns, further trajectories, and events by stream."""
        known = {stream: (table, gone[stream]) for stream, table in STREAM_TABLES.items() if gone.get(stream)}
        with self._lock, self.transaction() as db:
            found = remove_owned(db, whose, identity, ids, known)
            if found:
                self._end_history()
        if found:
            self.shrink()

    # queries

    def position(self, stream: str) -> int:
        """Return the sequence up to which a stream was read."""
        return self._position(stream)[0]

    @property
    def generation(self) -> int:
        """How often something was taken out: what was concluded from the file before is void."""
        return int(self.meta("generation") or 0)

    @property
    def forgets(self) -> int:
        """Sequence of the newest audit event that something was forgotten; 0 if there is none."""
        query = "SELECT coalesce(max(seq), 0) FROM audit WHERE action = ?"
        return int(self.rows(query, (FORGET,))[0][0])

    def rows(
        self, query: str, values: Sequence[object] | Mapping[str, object] = ()
    ) -> list[tuple[Json, ...]]:
        """Return the rows of a query."""
        with self._lock, VIEW.advised(self.path):
            return self._db.execute(query, values).fetchall()

    def meta(self, key: str) -> str:
        """Return a value of the file's own, or an empty text."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    def set_meta(self, key: str, value: str) -> None:
        """Keep a value of the file's own."""
        with self._lock, VIEW.advised(self.path):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _position(self, stream: str) -> tuple[int, float]:
        found = self.rows("SELECT seq, at FROM streams WHERE name = ?", (stream,))
        return (int(found[0][0]), float(found[0][1])) if found else (0, 0.0)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write, alone among all processes."""
        with self._lock, VIEW.advised(self.path), transaction(self._db):
            yield self._db


def _insert(db: sqlite3.Connection, table: str, columns: Columns) -> bool:
    """Insert a row whose key is new, or a trajectory's next revision; False: it came before."""
    names = ", ".join(columns)
    marks = ", ".join(f":{name}" for name in columns)
    target, known = "", "NOTHING"
    if table == "trajectories":
        newer = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
        target, known = " (id)", f"UPDATE SET {newer} WHERE excluded.revision > trajectories.revision"
    query = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT{target} DO {known}"
    return db.execute(query, columns).rowcount > 0


def _identity(bus: Bus) -> str:
    """Return what only this bus has; the first caller writes it."""
    mine = str(uuid.uuid4()).encode()
    return (change(bus.table(STATE), "bus", lambda known: known or mine) or mine).decode()


def event_at(bus: Bus, stream: str, sequence: int) -> BusEvent | None:
    """Return one event of a stream; None where it is gone."""
    found = next(iter(bus.replay(stream, since_sequence=sequence)), None)
    return found if found is not None and found.sequence == sequence else None
