"""What a run that ends leaves in the store: its trace, its reward, its ``live.agent.decision``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.wire import from_wire, to_wire
from pytest_tfgrpo.live.event_text import encode
from pytest_tfgrpo.live.records import LiveStatus, RewardBreakdown, RunTrace
from pytest_tfgrpo.live.states import EVENTS_LOST
from pytest_tfgrpo.live.store_reading import DECISION, open_choices

InferReward = Callable[[RunTrace], RewardBreakdown | None]


@dataclass(slots=True)
class OpenRun:
    """What a batch of events knows of a run."""

    sequence: int
    attempt: int
    status: LiveStatus
    scored: bool
    used: bool


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


def close_run(db: sqlite3.Connection, run: OpenRun, ending: RunEnding, infer: InferReward) -> str | None:
    """End a run; return what inference raised, if it did."""
    choices = open_choices(db, run.sequence, run.attempt)
    trace = _trace(db, run, ending)
    reward, error = _inferred(infer, trace)
    where = (run.sequence, run.attempt)
    usable = ending.status in (LiveStatus.SUCCEEDED, LiveStatus.FAILED) and ending.reason != EVENTS_LOST
    db.execute(
        "UPDATE attempts SET status = ?, reason = ?, ended_at = ? WHERE rollout = ? AND number = ?",
        (ending.status, ending.reason, ending.at, *where),
    )
    db.execute(
        "UPDATE rollouts SET status = ?, reason = ?, ended_at = ?, reply = ?, choices = ?, trace = ?,"
        " reward = ?, pending = CASE WHEN control OR NOT ? THEN NULL ELSE 1 END WHERE sequence = ?",
        (
            ending.status,
            ending.reason,
            ending.at,
            ending.reply,
            choices,
            encode(to_wire(trace)),
            _wire(reward),
            usable,
            run.sequence,
        ),
    )
    db.execute(
        "INSERT INTO spans SELECT ?, 1 + coalesce(max(seq), -1), ?, ?, ?, 0, ? FROM spans WHERE rollout = ?",
        (*where, DECISION, ending.at, _decision(ending.status, ending.reason, reward), run.sequence),
    )
    return error


def rescore_run(db: sqlite3.Connection, sequence: int, infer: InferReward) -> tuple[bool, str | None]:
    """Infer the reward of an ended run anew, as its score has come.

    Returns whether it had none before and has one now, and what inference raised.
    """
    text, before, status, reason, score, usable = db.execute(
        "SELECT trace, reward, status, reason, score, used_in IS NULL AND NOT control AND reason != ?"
        " AND status IN ('succeeded', 'failed') FROM rollouts WHERE sequence = ?",
        (EVENTS_LOST, sequence),
    ).fetchone()
    trace = replace(from_wire(RunTrace, json.loads(text)), score=score)
    reward, error = _inferred(infer, trace)
    db.execute(
        "UPDATE rollouts SET trace = ?, reward = ?, pending = CASE WHEN ? THEN 1 END WHERE sequence = ?",
        (encode(to_wire(trace)), _wire(reward), usable, sequence),
    )
    db.execute(
        "UPDATE spans SET data = ? WHERE rollout = ? AND name = ?",
        (_decision(LiveStatus(status), reason, reward), sequence, DECISION),
    )
    return before is None and reward is not None, error


def _trace(db: sqlite3.Connection, run: OpenRun, ending: RunEnding) -> RunTrace:
    turns, errors, blocked = db.execute(
        """SELECT coalesce(sum(name = 'live.agent.turn'), 0),
                  coalesce(sum(flag AND name = 'live.agent.tool'), 0),
                  coalesce(sum(flag AND name = 'live.agent.safety'), 0)
           FROM spans WHERE rollout = ? AND attempt = ?""",
        (run.sequence, run.attempt),
    ).fetchone()
    score, chars = db.execute(
        "SELECT score, coalesce(length(prompt), 0) FROM rollouts WHERE sequence = ?", (run.sequence,)
    ).fetchone()
    return RunTrace(
        prompt_chars=chars if ending.prompt_chars is None else ending.prompt_chars,
        reply_chars=ending.reply_chars,
        completed=ending.completed,
        turns=turns,
        tool_errors=errors,
        blocked=blocked > 0,
        score=score,
        cost_usd=ending.cost_usd,
        latency_ms=ending.latency_ms,
    )


def _inferred(infer: InferReward, trace: RunTrace) -> tuple[RewardBreakdown | None, str | None]:
    try:
        return infer(trace), None
    except Exception as error:  # noqa: BLE001 - a strategy of the application may raise anything
        return None, describe(error)


def _wire(reward: RewardBreakdown | None) -> str | None:
    return None if reward is None else encode(to_wire(reward))


def _decision(status: LiveStatus, reason: str, reward: RewardBreakdown | None) -> str:
    """Return the attributes of the span that closes a run."""
    attributes: dict[str, str | float | bool] = {"status": status, "reason": reason}
    if reward is not None:
        attributes |= {"reward": reward.composite}
        attributes |= {f"reward_{name}": value for name, value in reward.components.items()}
        attributes |= {
            "reward_confidence": reward.confidence,
            "reward_strategy": reward.strategy,
            "hard_gate": reward.hard_gate,
        }
    return encode(attributes)
