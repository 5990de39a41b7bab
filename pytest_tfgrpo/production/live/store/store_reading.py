"""Rows of the live store as records."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.production.live.records import (
    ArmChoice,
    GateState,
    LiveRollout,
    LiveStatus,
    LiveUpdate,
    RewardBreakdown,
    RunTrace,
)
from pytest_tfgrpo.production.live.states import UNKNOWN_ARM
from pytest_tfgrpo.production.live.store.event_text import stored_key
from pytest_tfgrpo.production.live.store.store_file import StoreFile

AT_ONCE = 500
"""Rows that one statement reads or names; SQLite may be built for 999 variables."""

COLUMNS = (
    "sequence, run, category, status, reason, control, attempt, trace, reward, started_at, ended_at, used_in,"
    " prompt, reply"
)
"""Of a rollout, in the order that `rollouts_of` reads."""
CHOICE, DECISION = "live.agent.choice", "live.agent.decision"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveSpan:
    """What happened at one place of a run."""

    seq: int
    attempt: int
    name: str
    """``live.agent.<choice|turn|tool|safety|decision>``."""
    at: float
    data: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveAttempt:
    """One attempt at a run; only the last one counts."""

    number: int
    status: LiveStatus
    reason: str
    started_at: float
    ended_at: float | None


def rollout_id(namespace: str, sequence: int) -> str:
    """Return the id of a rollout (decision 24)."""
    return f"live-rl-rollout-{namespace}-{sequence:010}"


def rollouts_of(
    db: sqlite3.Connection, namespace: str, rows: Sequence[tuple[Json, ...]]
) -> list[LiveRollout]:
    """Return the rollouts of rows with `COLUMNS`."""
    chosen = choices_of(db, [row[0] for row in rows])
    found = []
    for row in rows:
        sequence, run, category, status, reason, control, attempt, trace, reward, *rest = row
        started_at, ended_at, used_in, prompt, reply = rest
        found.append(
            LiveRollout(
                id=rollout_id(namespace, sequence),
                sequence=sequence,
                run=run,
                category=category,
                status=LiveStatus(status),
                reason=reason,
                control=bool(control),
                attempt=attempt,
                choices=tuple(chosen.get((sequence, attempt), ())),
                trace=None if trace is None else RunTrace(**json.loads(trace)),
                reward=None if reward is None else RewardBreakdown(**json.loads(reward)),
                started_at=started_at,
                ended_at=ended_at,
                used_in=used_in,
                prompt=prompt,
                reply=reply,
            )
        )
    return found


def choices_of(db: sqlite3.Connection, sequences: Sequence[int]) -> dict[tuple[int, int], list[ArmChoice]]:
    """Return the choices of rollouts by sequence and attempt, in the order of their places."""
    chosen: dict[tuple[int, int], list[ArmChoice]] = {}
    for start in range(0, len(sequences), AT_ONCE):
        some = sequences[start : start + AT_ONCE]
        rows = db.execute(
            f"SELECT rollout, attempt, data FROM spans WHERE rollout IN ({','.join('?' * len(some))})"
            " AND name = ? ORDER BY flag, seq",
            (*some, CHOICE),
        )
        for sequence, attempt, data in rows:  # checked when they were stored
            chosen.setdefault((sequence, attempt), []).append(ArmChoice(**json.loads(data)))
    return chosen


def update_of(text: str) -> LiveUpdate:
    """Return the update of a stored report."""
    return from_wire(LiveUpdate, json.loads(text))


def gate_of(text: str) -> GateState:
    """Return the guard's memory as it was stored."""
    fields = json.loads(text)
    return GateState(**{**fields, "blocked": tuple(fields["blocked"])})


def span_of(row: tuple[Json, ...]) -> LiveSpan:
    """Return the span of a row (seq, attempt, name, at, data)."""
    seq, attempt, name, at, data = row
    return LiveSpan(seq=seq, attempt=attempt, name=name, at=at, data=json.loads(data))


class LiveReader(StoreFile):
    """What a live store knows; reading holds up no writer."""

    def rollouts(
        self, *, after: int = 0, status: LiveStatus | None = None, limit: int | None = None
    ) -> Iterator[LiveRollout]:
        """Yield the rollouts with a sequence beyond `after`, in order; reading does not hold up writers."""
        where, values = ("", ()) if status is None else (" AND status = ?", (status,))
        left = limit
        while left is None or left > 0:
            page = AT_ONCE if left is None else min(left, AT_ONCE)
            with self._reading() as db:
                rows = db.execute(
                    f"SELECT {COLUMNS} FROM rollouts WHERE sequence > ?{where} ORDER BY sequence LIMIT ?",
                    (after, *values, page),
                ).fetchall()
                found = rollouts_of(db, self.namespace, rows)
            yield from found
            if len(found) < page:
                return
            after = found[-1].sequence
            left = None if left is None else left - page

    def rollout(self, id_: str) -> LiveRollout | None:
        """Return the rollout with this id; None if there is none."""
        sequence = self._sequence(id_)
        with self._reading():
            known = sequence and self._one("SELECT 1 FROM rollouts WHERE sequence = ?", sequence)
            return self._rollout(sequence) if known else None

    def _rollout(self, sequence: int) -> LiveRollout:
        return self._rollouts([sequence])[0]

    def _rollouts(self, sequences: Sequence[int]) -> list[LiveRollout]:
        """Return these rollouts, in this order."""
        select = f"SELECT {COLUMNS} FROM rollouts WHERE sequence = ?"
        rows = [self._db.execute(select, (sequence,)).fetchone() for sequence in sequences]
        return rollouts_of(self._db, self.namespace, rows)

    def _sequence(self, id_: str) -> int:
        """Return the sequence of a rollout's id; 0 for what is none of this store."""
        number = id_.rpartition("-")[2]
        known = number.isascii() and number.isdecimal() and len(number) < 19
        return int(number) if known and rollout_id(self.namespace, int(number)) == id_ else 0

    def runs_by_owner(self, owners: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Return of those of `owners` that have opened a run its key, and whether it has a score."""
        found: dict[str, tuple[str, bool]] = {}
        by_key = {stored_key(owner): owner for owner in owners}
        keys = list(by_key)
        with self._reading() as db:
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                marks = ",".join("?" * len(some))
                select = f"SELECT owner, run, score IS NOT NULL FROM rollouts WHERE owner IN ({marks})"
                rows = db.execute(select, some)
                found |= {by_key[key]: (run, bool(scored)) for key, run, scored in rows}
        return found

    def spans(self, id_: str) -> tuple[LiveSpan, ...]:
        """Return what happened in a rollout, in order."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT seq, attempt, name, at, data FROM spans WHERE rollout = ? ORDER BY seq",
                (self._sequence(id_),),
            ).fetchall()
        return tuple(map(span_of, rows))

    def attempts(self, id_: str) -> tuple[LiveAttempt, ...]:
        """Return the attempts of a rollout, in order."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT number, status, reason, started_at, ended_at FROM attempts WHERE rollout = ?"
                " ORDER BY number",
                (self._sequence(id_),),
            ).fetchall()
        return tuple(
            LiveAttempt(number=n, status=LiveStatus(status), reason=reason, started_at=start, ended_at=end)
            for n, status, reason, start, end in rows
        )

    def updates(self, *, after: int = 0) -> tuple[LiveUpdate, ...]:
        """Return the updates with a number beyond `after`, in order, executed or not."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT report FROM updates WHERE number > ? ORDER BY number", (after,)
            ).fetchall()
        return tuple(update_of(text) for (text,) in rows)

    def update_counts(self) -> tuple[int, int]:
        """Return how many updates there are, which is the number of the last one, and how many of them were
        executed."""
        with self._reading() as db:
            found = db.execute("SELECT count(*), coalesce(sum(executed), 0) FROM updates").fetchone()
        return int(found[0]), int(found[1])

    def left_out(self) -> Mapping[str, int]:
        """Return how many runs the updates left out, by reason, without those that wait for another process.

        One whose outcome was not known may have been used later.
        """
        with self._reading() as db:
            rows = db.execute("""SELECT report FROM updates WHERE report NOT LIKE '%"left_out":{}%'""")
            found = sum((Counter(update_of(text).left_out) for (text,) in rows), Counter[str]())
        return {reason: count for reason, count in sorted(found.items()) if reason != UNKNOWN_ARM}

    def counts(self) -> Mapping[str, int]:
        """Return how many runs there are by status, and of all how many are used and how many control."""
        with self._reading() as db:
            by_status = dict(db.execute("SELECT status, count(*) FROM rollouts GROUP BY status").fetchall())
            used, control = db.execute(
                "SELECT count(used_in), coalesce(sum(control), 0) FROM rollouts"
            ).fetchone()
        return {**{str(s): by_status.get(s, 0) for s in LiveStatus}, "used": used, "control": control}

    def refusals(self) -> Mapping[str, int]:
        """Return how many events were refused, by reason."""
        with self._reading() as db:
            return dict(db.execute("SELECT reason, count FROM refusals ORDER BY reason").fetchall())

    def selector(self, number: int | None = None) -> tuple[int, Json] | None:
        """Return number and document of a selector, by default the newest; None if there is none."""
        which, values = (
            ("ORDER BY number DESC LIMIT 1", ()) if number is None else ("WHERE number = ?", (number,))
        )
        with self._reading() as db:
            row = db.execute(f"SELECT number, document FROM selectors {which}", values).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def selector_number(self) -> int:
        """Return the number of the newest selector; 0 if there is none."""
        return int(self._one("SELECT max(number) FROM selectors") or 0)

    def gate(self) -> GateState:
        """Return the guard's memory."""
        text = self._one("SELECT document FROM gate ORDER BY number DESC LIMIT 1")
        return GateState() if text is None else gate_of(text)

    def gate_journal(self) -> list[tuple[float, GateState]]:
        """Return when the guard changed, and to what, oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT at, document FROM gate ORDER BY number").fetchall()
        return [(at, gate_of(text)) for at, text in rows]
