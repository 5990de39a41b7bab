"""Sessions of users as a ramp counts them: each once, when it has been idle, by what is known then.

Which runs are of the ramp follows from their order on the bus alone, so that no clock matters for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from operator import itemgetter
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.deployment.deployed_events import later
from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.production.view.view import REWARDS, LoopView

IDLE_MIN = 10.0
"""Minutes without a run after which a session is settled."""
REWARD_MIN = 1440.0
"""Minutes from then within which its first reward counts, where none was known before."""
MOST_OF_USER = 2
"""Sessions of one user that count a day, in both arms together: one user decides nothing."""
_DAY = len("2026-01-01")
_AT_ONCE = 500
_RUNS = """SELECT seq, session, id, policy_version, user_ref, started, ended, time, blocked,
    coalesce(json_extract(slim, '$.outcome.task_status') = 'failed', 0)
    FROM trajectories WHERE seq > ? ORDER BY seq"""


class SettledSession(NamedTuple):
    """What is known of a session that met one version, when it settled, or when its first reward came."""

    canary: bool
    share: float
    """Of the sessions that met the canary when it began."""
    sequence: int
    """Of its first run on the bus."""
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
    settled: str
    """ISO 8601 in UTC."""
    was: Literal["new", "waiting", "too late"] = "new"
    """`waiting`: it was counted without its reward, which has come now; `too late`: it does not count."""


@dataclass(kw_only=True, slots=True)
class _OpenSession:
    sequence: int
    started: str
    last: str = ""
    user: str = ""
    versions: set[str | None] = field(default_factory=set)
    runs: dict[str, tuple[bool, bool, float]] = field(default_factory=dict)


class _Waiting(NamedTuple):
    """A settled session without a reward."""

    session: SettledSession
    runs: Sequence[str]


class SettledSessions:
    """The sessions of one ramp; those that began before it, or met two versions, are none of it."""

    def __init__(self, ramp: Ramp, live: str) -> None:
        """`live` is the version that the ramp is measured against."""
        self._canary, self._start = ramp.version, ramp.began[0]
        self._position = self._before = ramp.step_positions[0]
        self._arms = {live: False, ramp.version: True}
        self._rewards = ramp.said_positions[1]
        self._first_canary = self._start
        """When, by its own clock, the first run of the canary started, if that is before the ramp."""
        self._open: dict[str, _OpenSession] = {}
        self._done: set[str] = set()
        self._waiting: dict[str, _Waiting] = {}
        """By the id of each of their runs."""
        self._of_user: dict[tuple[str, str], int] = {}
        """Sessions by user and day."""
        self._users: set[str] = set()

    def read(self, view: LoopView, ramp: Ramp, now: str) -> Iterator[SettledSession]:
        """Yield what settled, or was rewarded, since the last time, in this order; raises BusError."""
        rewards = view.position(REWARDS)
        self._take_in(view, now)
        found = [*self._rewarded(view)]
        due = [
            (settled, session)
            for session, known in self._open.items()
            if (settled := later(known.last, IDLE_MIN)) <= now
        ]
        due.sort()
        for start in range(0, len(due), _AT_ONCE):
            found += self._settle(view, ramp, due[start : start + _AT_ONCE])
        self._rewards = rewards
        found.sort(key=itemgetter(0))
        for _, session in found:
            yield session

    def _take_in(self, view: LoopView, now: str) -> None:
        for seq, session, id_, version, user, started, ended, time, blocked, failed in view.rows(
            _RUNS, (self._position,)
        ):
            self._position = seq
            if version == self._canary:
                self._first_canary = min(self._first_canary, started)
            if session in self._done:
                continue
            known = self._open.get(session)
            if known is None:
                known = self._open[session] = _OpenSession(sequence=seq, started=started)
            known.started, known.last = min(known.started, started), max(known.last, time)
            known.user = known.user or user or ""
            known.versions.add(version)
            known.runs[id_] = (bool(failed), bool(blocked), _seconds(started, ended))
        for known in self._open.values():
            known.last = min(known.last, now)  # a clock that was set back must not keep it open

    def _settle(self, view: LoopView, ramp: Ramp, due: Sequence[tuple[str, str]]) -> Iterator[_Timed]:
        found = {session: self._open.pop(session) for _, session in due}
        firsts = _first_sequences(view, [id_ for known in found.values() for id_ in known.runs])
        older = self._older(view, found)
        rewards = _rewards(view, [id_ for known in found.values() for id_ in known.runs])
        for settled, session in due:
            known = found[session]
            self._done.add(session)
            sequence = min(known.sequence, *(firsts.get(id_, known.sequence) for id_ in known.runs))
            (version, *others) = known.versions
            before = session in older or sequence <= self._before or self._was_under_way(known)
            if others or version not in self._arms or before:
                continue
            user = known.user or session
            day = (user, settled[:_DAY])
            self._of_user[day] = self._of_user.get(day, 0) + 1
            if self._of_user[day] > MOST_OF_USER:
                continue
            first = known.user != "" and user not in self._users
            self._users.add(user)
            one = SettledSession(
                canary=self._arms[version],
                share=ramp.share_at(sequence),
                sequence=sequence,
                first=first,
                reward=_known_at(rewards, known.runs, settled),
                failed=any(failed for failed, _, _ in known.runs.values()),
                blocked=any(blocked for _, blocked, _ in known.runs.values()),
                seconds=max(seconds for _, _, seconds in known.runs.values()),
                settled=settled,
            )
            yield settled, one
            if one.reward is None:
                waiting = _Waiting(one, [*known.runs])
                self._waiting |= dict.fromkeys(known.runs, waiting)
                yield from self._first_reward(waiting, rewards)

    def _was_under_way(self, known: _OpenSession) -> bool:
        """Return whether a session began before the ramp, as far as the clocks of runs can be believed.

        A run of the canary that started before the ramp did shows that they cannot: some clock was set back.
        """
        return known.started < self._start <= self._first_canary

    def _rewarded(self, view: LoopView) -> Iterator[_Timed]:
        """Yield the sessions whose first reward came since they settled."""
        if not self._waiting:
            return
        query = "SELECT DISTINCT trajectory_id FROM rewards WHERE own AND seq > ?"
        new = [id_ for (id_,) in view.rows(query, (self._rewards,)) if id_ in self._waiting]
        found = {waiting.runs[0]: waiting for id_ in new for waiting in [self._waiting[id_]]}
        rewards = _rewards(view, [id_ for waiting in found.values() for id_ in waiting.runs])
        for waiting in found.values():
            yield from self._first_reward(waiting, rewards)

    def _first_reward(self, waiting: _Waiting, rewards: _Rewards) -> Iterator[_Timed]:
        """Yield a session as its first reward values it, if there is one."""
        settled = waiting.session.settled
        times = [time for id_ in waiting.runs for time, _ in rewards.get(id_, ())]
        if not times:
            return
        at = max(settled, min(times))
        for id_ in waiting.runs:
            del self._waiting[id_]
        if at > later(settled, REWARD_MIN):
            yield at, waiting.session._replace(was="too late")
        else:
            reward = _known_at(rewards, waiting.runs, at)
            yield at, waiting.session._replace(was="waiting", reward=reward)

    def _older(self, view: LoopView, sessions: Iterable[str]) -> set[str]:
        """Return those of some sessions that had a run before the ramp."""
        names = [*sessions]
        query = f"""SELECT DISTINCT session FROM trajectories
            WHERE session IN ({_marks(names)}) AND seq <= ?"""
        return {row[0] for row in view.rows(query, (*names, self._before))}


_Timed: TypeAlias = tuple[str, SettledSession]
"""When a session counts, and what is known of it then."""
_Rewards: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
"""Times and totals of the rewards of trajectories, the newest revision last."""


def located(view: LoopView, ramp: Ramp) -> Ramp:
    """Return a ramp with its positions on the bus, which rows of earlier releases lack.

    They follow then from when runs arrived, and when its steps began.
    """
    if ramp.step_positions:
        return ramp
    runs, feedback, rewards = (
        _arrived_before(view, name) for name in ("trajectories", "feedback", "rewards")
    )
    return replace(
        ramp,
        step_positions=tuple(runs(began) for began in ramp.began),
        since_position=ramp.since_position or runs(ramp.since),
        said_positions=(feedback(ramp.began[0]), rewards(ramp.began[0])),
    )


def _arrived_before(view: LoopView, table: str) -> Callable[[str], int]:
    def sequence(time: str) -> int:
        query = f"SELECT coalesce(max(seq), 0) FROM {table} WHERE at < ?"
        return int(view.rows(query, (datetime.fromisoformat(time).timestamp(),))[0][0])

    return sequence


def _first_sequences(view: LoopView, ids: Sequence[str]) -> Mapping[str, int]:
    """Return the first sequence of trajectories that were published again."""
    found: dict[str, int] = {}
    for some in _pages(ids):
        query = f"SELECT id, min(seq) FROM superseded WHERE id IN ({_marks(some)}) GROUP BY id"
        found.update(view.rows(query, some))
    return found


def _rewards(view: LoopView, ids: Sequence[str]) -> _Rewards:
    found: dict[str, list[tuple[str, float]]] = {}
    for some in _pages(ids):
        query = f"""SELECT trajectory_id, time, total FROM rewards
            WHERE own AND trajectory_id IN ({_marks(some)}) ORDER BY revision"""
        for id_, time, total in view.rows(query, some):
            found.setdefault(id_, []).append((time, total))
    return found


def _pages(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _known_at(rewards: _Rewards, runs: Iterable[str], time: str) -> float | None:
    """Return the mean of the totals of some runs that are known at a time; None where none is."""
    totals = [
        total
        for id_ in runs
        if (total := next((total for at, total in reversed(rewards.get(id_, ())) if at <= time), None))
        is not None
    ]
    return fmean(min(1.0, max(0.0, total)) for total in totals) if totals else None  # sums may round beyond 1


def _seconds(started: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
