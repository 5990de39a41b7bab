"""Sessions of users as a ramp counts them: each once, when it has been idle, by what is known then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from statistics import fmean
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.deployment.deployed_events import later
from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.production.view.view import LoopView

IDLE_MIN = 10.0
"""Minutes without a run after which a session is settled."""
MOST_OF_USER = 2
"""Sessions of one user that count a day, in both arms together: one user decides nothing."""
_DAY = len("2026-01-01")
_AT_ONCE = 500
_RUNS = """SELECT seq, session, id, policy_version, user_ref, started, ended, time, blocked,
    coalesce(json_extract(slim, '$.outcome.task_status') = 'failed', 0)
    FROM trajectories WHERE seq > ? AND time >= ? ORDER BY seq"""


class SettledSession(NamedTuple):
    """What is known of a session that met one version, when it settled."""

    canary: bool
    share: float
    """Of the sessions that met the canary when it began."""
    settled: str
    """ISO 8601 in UTC."""
    first: bool
    """Whether it is the first one of its user, who is known."""
    reward: float | None
    """Mean of its runs; None where too little was known."""
    failed: bool
    """A run of it failed."""
    blocked: bool
    """Safety blocked a run of it."""
    seconds: float
    """Of its longest run."""


@dataclass(kw_only=True, slots=True)
class _OpenSession:
    started: str
    last: str = ""
    user: str = ""
    versions: set[str | None] = field(default_factory=set)
    runs: dict[str, tuple[bool, bool, float]] = field(default_factory=dict)


class SettledSessions:
    """The sessions of one ramp; those that began before it, or met two versions, are none of it."""

    def __init__(self, ramp: Ramp, live: str) -> None:
        """`live` is the version that the ramp is measured against."""
        self._start, self._arms = ramp.began[0], {live: False, ramp.version: True}
        self._position = 0
        self._open: dict[str, _OpenSession] = {}
        self._done: set[str] = set()
        self._of_user: dict[tuple[str, str], int] = {}
        """Sessions by user and day."""
        self._users: set[str] = set()

    def read(self, view: LoopView, ramp: Ramp, now: str) -> Iterator[SettledSession]:
        """Yield what settled since the last time, in the order in which it did; raises BusError."""
        self._take_in(view)
        due = [
            (settled, session)
            for session, known in self._open.items()
            if (settled := later(known.last, IDLE_MIN)) <= now
        ]
        due.sort()
        for start in range(0, len(due), _AT_ONCE):
            yield from self._settle(view, ramp, due[start : start + _AT_ONCE])

    def _take_in(self, view: LoopView) -> None:
        for seq, session, id_, version, user, started, ended, time, blocked, failed in view.rows(
            _RUNS, (self._position, self._start)
        ):
            self._position = seq
            if session in self._done:
                continue
            known = self._open.get(session)
            if known is None:
                known = self._open[session] = _OpenSession(started=started)
            known.started, known.last = min(known.started, started), max(known.last, time)
            known.user = known.user or user or ""
            known.versions.add(version)
            known.runs[id_] = (bool(failed), bool(blocked), _seconds(started, ended))

    def _settle(self, view: LoopView, ramp: Ramp, due: Sequence[tuple[str, str]]) -> Iterator[SettledSession]:
        older = self._older(view, [session for _, session in due])
        found = {session: self._open.pop(session) for _, session in due}
        rewards = _rewards(view, [id_ for known in found.values() for id_ in known.runs])
        for settled, session in due:
            known = found[session]
            self._done.add(session)
            (version, *others) = known.versions
            before = session in older or known.started < self._start  # what came before may be forgotten
            if others or version not in self._arms or before:
                continue
            user = known.user or session
            day = (user, settled[:_DAY])
            self._of_user[day] = self._of_user.get(day, 0) + 1
            if self._of_user[day] > MOST_OF_USER:
                continue
            first = known.user != "" and user not in self._users
            self._users.add(user)
            totals = [
                total for id_ in known.runs if (total := _known_at(rewards.get(id_, ()), settled)) is not None
            ]
            yield SettledSession(
                canary=self._arms[version],
                share=ramp.share_at(known.started),
                settled=settled,
                first=first,
                reward=fmean(totals) if totals else None,
                failed=any(failed for failed, _, _ in known.runs.values()),
                blocked=any(blocked for _, blocked, _ in known.runs.values()),
                seconds=max(seconds for _, _, seconds in known.runs.values()),
            )

    def _older(self, view: LoopView, sessions: Sequence[str]) -> set[str]:
        """Return those of some sessions that began before the ramp."""
        marks = ", ".join("?" for _ in sessions)
        query = f"SELECT DISTINCT session FROM trajectories WHERE session IN ({marks}) AND started < ?"
        return {row[0] for row in view.rows(query, (*sessions, self._start))}


def _rewards(view: LoopView, ids: Sequence[str]) -> Mapping[str, list[tuple[str, float]]]:
    """Return times and totals of the rewards of trajectories, the newest revision last."""
    found: dict[str, list[tuple[str, float]]] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        marks = ", ".join("?" for _ in some)
        query = f"""SELECT trajectory_id, time, total FROM rewards WHERE own AND trajectory_id IN ({marks})
            ORDER BY revision"""
        for id_, time, total in view.rows(query, some):
            found.setdefault(id_, []).append((time, total))
    return found


def _known_at(rewards: Sequence[tuple[str, float]], time: str) -> float | None:
    total = next((total for known, total in reversed(rewards) if known <= time), None)
    return None if total is None else min(1.0, max(0.0, total))  # a sum of shares may round beyond 1


def _seconds(started: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
