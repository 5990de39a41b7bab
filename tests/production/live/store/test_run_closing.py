"""Runs that end: what their traces count, which rewards are refused, and what an update may use."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from pytest_tfgrpo.production.live.records import (
    ArmChoice,
    LiveRollout,
    LiveStatus,
    RewardBreakdown,
    RunTrace,
)
from pytest_tfgrpo.production.live.states import EVENTS_LOST
from pytest_tfgrpo.production.live.store import run_closing
from pytest_tfgrpo.production.live.store.run_closing import (
    ClosedRun,
    OpenRun,
    RunEnding,
    close_runs,
    is_usable,
    rescore,
)
from pytest_tfgrpo.production.live.store.store_schema import STORE

CHOICE = {"point": "prompt", "place": 0, "arm": "learned", "arms": {}, "probabilities": {}, "selector": 0}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        for statements in STORE.migrations:
            for statement in statements:
                made.execute(statement)
        yield made


def opened(db: sqlite3.Connection, sequence: int = 1, *, attempt: int = 1, control: int = 0) -> OpenRun:
    db.execute(
        "INSERT INTO rollouts (sequence, run, owner, category, control, attempt, started_at, touched_at,"
        " prompt, score) VALUES (?, ?, 'o', 'billing', ?, ?, 10.0, 10.0, 'Pay 7', 0.25)",
        (sequence, f"run-{sequence}", control, attempt),
    )
    for number in range(1, attempt + 1):
        db.execute(
            "INSERT INTO attempts (rollout, number, started_at) VALUES (?, ?, 10.0)", (sequence, number)
        )
    return OpenRun(sequence=sequence, attempt=attempt, status=LiveStatus.RUNNING, scored=False, used=False)


def span(db: sqlite3.Connection, sequence: int, seq: int, attempt: int, name: str, flag: int = 0) -> None:
    row = (sequence, seq, attempt, f"live.agent.{name}", 11.0, flag, "{}")
    db.execute("INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def ending(status: LiveStatus = LiveStatus.SUCCEEDED, **changes: object) -> RunEnding:
    fields = {"reason": "", "at": 20.0, "reply": "Paid", "reply_chars": 4, "completed": True} | changes
    return RunEnding(status=status, **fields)  # type: ignore[arg-type]


def breakdown(**changes: object) -> RewardBreakdown:
    fields = {"strategy": "s", "composite": 0.5, "components": {"completion": 0.5}, "confidence": 0.75}
    return RewardBreakdown(**{**fields, "hard_gate": False, **changes})  # type: ignore[arg-type]


def close(
    db: sqlite3.Connection,
    *endings: tuple[OpenRun, RunEnding],
    infer: Callable[[RunTrace], RewardBreakdown | None] = lambda trace: breakdown(),
) -> list[ClosedRun]:
    return list(close_runs(db, "shop", endings, infer))


def test_a_trace_counts_the_last_attempt_alone_and_the_decision_comes_last(db: sqlite3.Connection) -> None:
    run, other = opened(db, 1, attempt=2), opened(db, 2)
    for seq, (attempt, name, flag) in enumerate(
        [
            (1, "turn", 0),
            (1, "tool", 1),
            (1, "safety", 1),
            (2, "turn", 0),
            (2, "turn", 1),
            (2, "tool", 1),
            (2, "tool", 0),
            (2, "safety", 0),
            (1, "turn", 0),
        ]
    ):
        span(db, 1, seq, attempt, name, flag)
    (one, error), (two, _) = close(
        db, (run, ending(cost_usd=0.5, latency_ms=7.0)), (other, ending(prompt_chars=3))
    )
    assert error is None
    assert one.trace == RunTrace(
        prompt_chars=5,
        reply_chars=4,
        completed=True,
        turns=2,
        tool_errors=1,
        blocked=False,
        score=0.25,
        cost_usd=0.5,
        latency_ms=7.0,
    )
    assert two.trace is not None
    assert (two.trace.prompt_chars, two.trace.turns) == (3, 0)
    decisions = db.execute(
        "SELECT rollout, seq, attempt, at, flag FROM spans WHERE name = 'live.agent.decision'"
    )
    assert decisions.fetchall() == [(1, 9, 2, 20.0, 0), (2, 0, 1, 20.0, 0)]


def test_a_closed_run_is_what_the_store_had_and_how_it_ended(db: sqlite3.Connection) -> None:
    run = opened(db, 7, attempt=2, control=1)
    for seq, attempt in enumerate((1, 2)):
        data = json.dumps({**CHOICE, "arm": f"arm-{attempt}"})
        db.execute("INSERT INTO spans VALUES (7, ?, ?, 'live.agent.choice', 1.0, 0, ?)", (seq, attempt, data))
    ((found, _),) = close(db, (run, ending(LiveStatus.FAILED, reason="timeout")))
    assert found == LiveRollout(
        id="live-rl-rollout-shop-0000000007",
        sequence=7,
        run="run-7",
        category="billing",
        status=LiveStatus.FAILED,
        reason="timeout",
        control=True,
        attempt=2,
        choices=(ArmChoice(**{**CHOICE, "arm": "arm-2"}),),
        trace=found.trace,
        reward=breakdown(),
        started_at=10.0,
        ended_at=20.0,
        used_in=None,
        prompt="Pay 7",
        reply="Paid",
    )
    attempts = db.execute("SELECT number, status, reason, ended_at FROM attempts ORDER BY number").fetchall()
    assert attempts == [(1, "running", "", None), (2, "failed", "timeout", 20.0)]
    stored = db.execute(
        "SELECT status, reason, ended_at, reply, pending, trace, reward FROM rollouts"
    ).fetchone()
    assert stored[:5] == ("failed", "timeout", 20.0, "Paid", None)
    assert (json.loads(stored[5])["turns"], json.loads(stored[6])["composite"]) == (0, 0.5)


def test_runs_are_closed_in_the_order_given_also_across_statements(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_closing, "AT_ONCE", 2)
    endings = [(opened(db, n), ending(at=float(n))) for n in (3, 1, 5, 2, 4)]
    assert [(one.sequence, one.ended_at) for one, _ in close(db, *endings)] == [
        (n, float(n)) for n in (3, 1, 5, 2, 4)
    ]
    assert db.execute("SELECT count(*) FROM rollouts WHERE status = 'succeeded'").fetchone() == (5,)


ENDS = [
    (LiveStatus.SUCCEEDED, "", 0, True, True),
    (LiveStatus.FAILED, "timeout", 0, True, True),
    (LiveStatus.FAILED, EVENTS_LOST, 0, False, False),
    (LiveStatus.CANCELLED, "", 0, False, False),
    (LiveStatus.SUCCEEDED, "", 1, True, False),
]


@pytest.mark.parametrize(("status", "reason", "control", "rewarded", "usable"), ENDS)
def test_what_was_cancelled_or_is_not_whole_has_no_reward_and_control_teaches_nothing(
    db: sqlite3.Connection, status: LiveStatus, reason: str, control: int, rewarded: bool, usable: bool
) -> None:
    ((found, _),) = close(db, (opened(db, control=control), ending(status, reason=reason)))
    assert (found.reward is not None, is_usable(found)) == (rewarded, usable)
    pending = "SELECT pending FROM rollouts"
    assert db.execute(pending).fetchone() == (1 if usable else None,)
    assert not is_usable(replace(found, used_in=1))
    assert not is_usable(replace(found, status=LiveStatus.RUNNING))
    again, error = rescore(db, found, 1.0, lambda trace: breakdown(composite=trace.score))
    assert again.trace is not None
    assert (again.trace.score, again.reward and again.reward.composite, error) == (
        1.0,
        1.0 if rewarded else None,
        None,
    )
    assert db.execute(pending).fetchone() == (1 if usable else None,)
    (decision,) = db.execute("SELECT data FROM spans WHERE name = 'live.agent.decision'").fetchone()
    assert json.loads(decision).get("reward") == (1.0 if rewarded else None)
    assert json.loads(decision)["status"] == status


@pytest.mark.parametrize(
    ("blocked", "changes", "refused"),
    [
        (False, {}, ""),
        (False, {"composite": 1}, ""),
        (False, {"composite": -0.99}, ""),
        (False, {"composite": 1.01}, "composite in"),
        (False, {"composite": -1.01}, "composite in"),
        (False, {"composite": float("nan")}, "finite numbers"),
        (False, {"confidence": "high"}, "finite numbers"),
        (False, {"components": {"completion": None}}, "finite numbers"),
        (False, {"composite": -1}, "if and only if"),
        (False, {"hard_gate": True}, "if and only if"),
        (False, {"composite": -1, "hard_gate": True}, "if and only if"),
        (True, {"composite": -1, "hard_gate": True}, ""),
        (True, {"composite": -1}, "if and only if"),
        (True, {"hard_gate": True}, "if and only if"),
        (True, {}, "if and only if"),
    ],
)
def test_a_reward_that_is_none_or_contradicts_safety_is_refused(
    db: sqlite3.Connection, blocked: bool, changes: dict[str, object], refused: str
) -> None:
    run = opened(db)
    if blocked:
        span(db, 1, 0, 1, "safety", 1)
    ((found, error),) = close(db, (run, ending()), infer=lambda trace: breakdown(**changes))
    assert (found.reward is None) is bool(refused)
    assert refused in (error or "")
    assert bool(error) is bool(refused)
    assert is_usable(found)


def test_names_of_components_are_texts_and_no_reward_is_no_error(db: sqlite3.Connection) -> None:
    rewards = iter([breakdown(components={5: 0.25}), None])
    endings = ((opened(db, 1), ending()), (opened(db, 2), ending(reply=None)))
    (found, error), (silent, nothing) = close(db, *endings, infer=lambda trace: next(rewards))
    assert (found.reward and found.reward.components, error) == ({"5": 0.25}, None)
    assert (silent.reward, silent.reply, nothing) == (None, None, None)
