"""What runs that end leave in the store: their traces, their rewards, their ``live.agent.decision``.

All runs that end in a transaction are closed together, as a statement costs more than a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.records import LiveRollout, LiveStatus, RewardBreakdown, RunTrace
from pytest_tfgrpo.production.live.states import EVENTS_LOST
from pytest_tfgrpo.production.live.store.event_text import encode, is_number
from pytest_tfgrpo.production.live.store.store_reading import AT_ONCE, DECISION, choices_of, rollout_id

InferReward = Callable[[RunTrace], RewardBreakdown | None]


@dataclass(slots=True)
class OpenRun:
    """What a batch of events knows of a run."""

    sequence: int
    attempt: int
    status: LiveStatus
    scored: bool
    used: bool
    touched_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnding:
    """How a run ended, as its last event says or as its absence does."""

    status: LiveStatus
    reason: str
    at: float
    reply: str | None = None
    prompt_chars: int | None = None
    """None: those of the stored prompt."""
    reply_chars: int = 0
    completed: bool = False
    cost_usd: float | None = None
    latency_ms: float | None = None


class ClosedRun(NamedTuple):
    """A run that has ended, and what inference raised, if it did."""

    rollout: LiveRollout
    error: str | None


class _Closed(NamedTuple):
    rollout: LiveRollout
    error: str | None
    seq: int
    """Place of the decision."""


def close_runs(
    db: sqlite3.Connection,
    namespace: str,
    endings: Sequence[tuple[OpenRun, RunEnding]],
    infer: InferReward,
) -> Iterator[ClosedRun]:
    """End runs, in the order given."""
    rest = iter(endings)
    while some := list(islice(rest, AT_ONCE)):
        closed = list(_closed(db, namespace, some, infer))
        _write(db, closed)
        yield from (ClosedRun(one.rollout, one.error) for one in closed)


def _closed(
    db: sqlite3.Connection,
    namespace: str,
    endings: Sequence[tuple[OpenRun, RunEnding]],
    infer: InferReward,
) -> Iterator[_Closed]:
    sequences = [run.sequence for run, _ in endings]
    among = f"IN ({','.join('?' * len(sequences))})"
    rows = db.execute(
        "SELECT sequence, run, category, control, started_at, prompt, score FROM rollouts"
        f" WHERE sequence {among}",
        sequences,
    )
    known = {row[0]: row for row in rows}
    counts, last = _counted(db, sequences, among)
    chosen = choices_of(db, sequences)
    for run, ending in endings:
        where = (run.sequence, run.attempt)
        trace = _trace(known[run.sequence], ending, counts.get(where, (0, 0, 0)))
        says_nothing = ending.reason == EVENTS_LOST or ending.status is LiveStatus.CANCELLED
        reward, error = (None, None) if says_nothing else _inferred(infer, trace)
        sequence, key, category, control, started_at, prompt, _ = known[run.sequence]
        rollout = LiveRollout(
            id=rollout_id(namespace, sequence),
            sequence=sequence,
            run=key,
            category=category,
            status=ending.status,
            reason=ending.reason,
            control=bool(control),
            attempt=run.attempt,
            choices=tuple(chosen.get(where, ())),
            trace=trace,
            reward=reward,
            started_at=started_at,
            ended_at=ending.at,
            used_in=None,
            prompt=prompt,
            reply=ending.reply,
        )
        yield _Closed(rollout, error, last.get(sequence, -1) + 1)


def _counted(
    db: sqlite3.Connection, sequences: Sequence[int], among: str
) -> tuple[dict[tuple[int, int], tuple[int, int, int]], dict[int, int]]:
    """Return turns, failed tools and blocks by rollout and attempt, and the last place of each rollout."""
    counts: dict[tuple[int, int], tuple[int, int, int]] = {}
    last: dict[int, int] = {}
    for sequence, attempt, turns, errors, blocked, seq in db.execute(
        f"""SELECT rollout, attempt, sum(name = 'live.agent.turn'),
                   sum(flag AND name = 'live.agent.tool'), sum(flag AND name = 'live.agent.safety'), max(seq)
            FROM spans WHERE rollout {among} GROUP BY rollout, attempt""",
        sequences,
    ):
        counts[sequence, attempt] = (turns, errors, blocked)
        last[sequence] = max(seq, last.get(sequence, -1))
    return counts, last


def _trace(known: tuple[Json, ...], ending: RunEnding, counts: tuple[int, int, int]) -> RunTrace:
    *_, prompt, score = known
    turns, errors, blocked = counts
    return RunTrace(
        prompt_chars=len(prompt or "") if ending.prompt_chars is None else ending.prompt_chars,
        reply_chars=ending.reply_chars,
        completed=ending.completed,
        turns=turns,
        tool_errors=errors,
        blocked=blocked > 0,
        score=score,
        cost_usd=ending.cost_usd,
        latency_ms=ending.latency_ms,
    )


def _write(db: sqlite3.Connection, closed: Sequence[_Closed]) -> None:
    db.executemany(
        "UPDATE attempts SET status = ?, reason = ?, ended_at = ? WHERE rollout = ? AND number = ?",
        [(one.status, one.reason, one.ended_at, one.sequence, one.attempt) for one, *_ in closed],
    )
    db.executemany(
        """UPDATE rollouts SET status = ?, reason = ?, ended_at = ?, reply = ?, trace = ?, reward = ?,
                               pending = ? WHERE sequence = ?""",
        [
            (
                one.status,
                one.reason,
                one.ended_at,
                one.reply,
                _wire(one.trace),
                _wire(one.reward),
                1 if is_usable(one) else None,
                one.sequence,
            )
            for one, *_ in closed
        ],
    )
    db.executemany(
        "INSERT INTO spans VALUES (?, ?, ?, ?, ?, 0, ?)",
        [(one.sequence, seq, one.attempt, DECISION, one.ended_at, _decision(one)) for one, _, seq in closed],
    )


def is_usable(rollout: LiveRollout) -> bool:
    """Return whether an update may use a run: what was cancelled, or is not whole, teaches nothing."""
    ended = rollout.status in (LiveStatus.SUCCEEDED, LiveStatus.FAILED)
    return ended and not rollout.control and rollout.used_in is None and rollout.reason != EVENTS_LOST


def rescore(db: sqlite3.Connection, rollout: LiveRollout, score: float, infer: InferReward) -> ClosedRun:
    """Infer the reward of an ended run anew, as its score has come; a run that is not whole has none."""
    assert rollout.trace is not None
    trace = replace(rollout.trace, score=score)
    says_nothing = rollout.reason == EVENTS_LOST or rollout.status is LiveStatus.CANCELLED
    reward, error = (None, None) if says_nothing else _inferred(infer, trace)
    after = replace(rollout, trace=trace, reward=reward)
    db.execute(
        "UPDATE rollouts SET trace = ?, reward = ?, pending = ? WHERE sequence = ?",
        (_wire(trace), _wire(reward), 1 if is_usable(after) else None, after.sequence),
    )
    db.execute(
        "UPDATE spans SET data = ? WHERE rollout = ? AND name = ?",
        (_decision(after), after.sequence, DECISION),
    )
    return ClosedRun(after, error)


def _inferred(infer: InferReward, trace: RunTrace) -> tuple[RewardBreakdown | None, str | None]:
    try:
        reward = infer(trace)
        return None if reward is None else _checked(reward, trace), None
    except Exception as error:  # noqa: BLE001 - a strategy of the application may raise anything
        return None, describe(error)


def _checked(reward: RewardBreakdown, trace: RunTrace) -> RewardBreakdown:
    """Return a reward that can be stored; raises ValueError for one that is none (decisions 1, 28)."""
    components = {str(name): value for name, value in reward.components.items()}
    numbers = (reward.composite, reward.confidence, *components.values())
    if not all(map(is_number, numbers)) or not -1 <= reward.composite <= 1:
        raise ValueError(f"a reward is finite numbers with a composite in [-1, 1], not {short(reward)}")
    if (reward.composite == -1) != trace.blocked or reward.hard_gate != trace.blocked:
        raise ValueError(f"a composite is -1 if and only if safety blocked the run, not {short(reward)}")
    return replace(reward, components=components)


def _wire(record: RunTrace | RewardBreakdown | None) -> str | None:
    """Return a flat record as JSON."""
    if record is None:
        return None
    return encode({name: getattr(record, name) for name in record.__slots__})


def _decision(rollout: LiveRollout) -> str:
    """Return the attributes of the span that closes a run."""
    attributes: dict[str, Json] = {"status": rollout.status, "reason": rollout.reason}
    if (reward := rollout.reward) is not None:
        attributes["reward"] = reward.composite
        attributes |= {f"reward_{name}": value for name, value in reward.components.items()}
        attributes |= {
            "reward_confidence": reward.confidence,
            "reward_strategy": reward.strategy,
            "hard_gate": reward.hard_gate,
        }
    return encode(attributes)
