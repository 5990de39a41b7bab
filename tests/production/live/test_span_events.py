"""Runs of agents as events of live runs, without files and a store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_tfgrpo.production.live.intake.spans import (
    CHOICE_MARK,
    IngestReport,
    RunIdentity,
    _joined,
    events_of,
    identity_of,
    ingest_lines,
    mark_of,
    score_of,
)
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, SpanEvent, TraceOutcome, TraceStep

S = 10**9
IDENTITY = RunIdentity("ticket", "owner", "billing")


def step(at: float, kind: Any = "turn", **fields: Any) -> TraceStep:
    known: dict[str, Any] = {
        "kind": kind, "name": f"{kind} at {at}", "start_ns": int(at * S), "end_ns": int((at + 1) * S),
        "error": None,
    }  # fmt: skip
    return TraceStep(**known | fields)


def mark(at: float, arm: str, attempt: int = 1, identity: RunIdentity = IDENTITY, **more: Any) -> SpanEvent:
    choice = {"point": "config", "arm": arm, "selector": 7, "control": True} | more
    return SpanEvent(CHOICE_MARK, int(at * S), mark_of(identity, attempt, choice))


def run(*steps: TraceStep, span: str = "s", agent: TraceStep | None = None, **fields: Any) -> AgentRun:
    known: dict[str, Any] = {"outcomes": (), "marks": (), "place": "a:1"}
    outer = step(1, "agent", name="toy", asked="Why?", answered="So.", conversation="talk")
    return AgentRun(key=("t", span), agent=agent or outer, steps=steps, **known | fields)


def outcome(value: Any, label: str = "", at: int = 5) -> TraceOutcome:
    return TraceOutcome(name="helpful", value=value, at_ns=at * S, place=f"a:{at}", label=label)


def test_a_run_is_known_by_its_marks_or_else_by_conversation_span_and_agent() -> None:
    assert identity_of(run(marks=(mark(2, "x"),))) == IDENTITY
    other = SpanEvent("tfgrpo.other", 1, {"tfgrpo.live.run": "no"})
    assert identity_of(run(marks=(other,))) == RunIdentity("talk", "ts", "toy")
    nameless = run(agent=step(1, "agent", name="n" * 2000))
    assert identity_of(nameless) == RunIdentity("t", "ts", "n" * 1000)


def test_choices_turns_and_calls_come_in_their_order_with_a_retry_before_each_further_attempt() -> None:
    found = run(
        step(3), step(6, "tool", name="search", error="lost"), step(2, "tool", name="ask"),
        marks=(mark(3, "b"), mark(0.5, "a"), mark(5, "c", attempt=4)),
    )  # fmt: skip
    events = events_of(found, texts=True)
    assert [(e.kind, e.attempt, e.at) for e in events] == [
        ("start", 1, 0.5), ("choice", 1, 0.5), ("tool", 1, 2.0), ("choice", 1, 3.0), ("turn", 1, 3.0),
        ("retry", 2, 5.0), ("choice", 2, 5.0), ("tool", 2, 6.0), ("end", 2, 2.0),
    ]  # fmt: skip
    assert [e.seq for e in events] == list(range(9))
    assert {(e.run, e.owner) for e in events} == {("ticket", "owner")}
    start, end = events[0].data, events[-1].data
    assert start == {"category": "billing", "prompt": "Why?", "selector": 7, "control": True}
    assert [events[n].data.get("error") for n in (2, 7)] == [None, "lost"]
    assert end == {
        "status": "succeeded", "reason": "", "completed": True, "prompt_chars": 4, "reply_chars": 3,
        "latency_ms": 1000.0, "reply": "So.",
    }  # fmt: skip
    plain = events_of(run(), texts=True)[0].data
    assert (plain["selector"], plain["control"], plain["category"]) == (0, False, "toy")


def test_choices_of_another_run_around_are_not_its_own() -> None:
    inner = mark(3, "b", identity=RunIdentity("other", "another owner", "x"))
    events = events_of(run(marks=(mark(2, "a"), inner)), texts=True)
    assert [e.data["arm"] for e in events if e.kind == "choice"] == ["a"]


def test_a_run_that_failed_says_why_and_without_texts_that_it_did() -> None:
    failed = run(
        step(2, "tool", error="secret tool"), agent=step(1, "agent", asked="secret", error="secret end")
    )
    told, hidden = events_of(failed, texts=True), events_of(failed, texts=False)
    assert [told[n].data.get(key) for n, key in ((1, "error"), (2, "reason"), (2, "status"))] == [
        "secret tool", "secret end", "failed",
    ]  # fmt: skip
    assert [hidden[n].data.get(key) for n, key in ((0, "prompt"), (1, "error"), (2, "reason"))] == [
        None, "error", "error",
    ]  # fmt: skip
    assert "secret" not in json.dumps([e.data for e in hidden])
    assert (hidden[-1].data["completed"], hidden[-1].data["prompt_chars"]) == (False, 6)
    assert "reply" not in events_of(run(), texts=False)[-1].data


@pytest.mark.parametrize("choice", [None, 7, "[]", "{"])
def test_a_mark_without_a_choice_is_none(choice: Any) -> None:
    broken = mark(2, "a")
    attributes = {**broken.attributes, "tfgrpo.live.choice": choice}
    with pytest.raises(ValueError, match=r"\w"):
        events_of(run(marks=(broken._replace(attributes=attributes),)), texts=True)
    untold = {**broken.attributes, "tfgrpo.live.attempt": True}
    with pytest.raises(ValueError, match="a mark of live RL has no choice"):
        events_of(run(marks=(broken._replace(attributes=untold),)), texts=True)


def test_the_first_outcome_that_is_a_score_counts_and_labels_alone_are_none() -> None:
    outcomes = (outcome(None, "good"), outcome(True), outcome(1.5), outcome(1), outcome(0.25))
    score, refused = score_of(run(outcomes=outcomes))
    assert score is not None
    assert (score.kind, score.run, score.data, score.at) == ("outcome", "talk", {"score": 1.0}, 5.0)
    assert [one.reason for one in refused] == ["outcome_not_a_number", "outcome_out_of_range"]
    assert score_of(run(outcomes=(outcome(None, "good"),))) == (None, [])
    assert [one.reason for one in score_of(run(outcomes=(outcome(None),)))[1]] == ["outcome_not_a_number"]


def test_agents_that_served_one_run_are_one_run_from_the_first_prompt_to_the_last_reply() -> None:
    first = run(
        step(2), span="a", marks=(mark(2, "x"),), outcomes=(outcome(1.0, at=9),),
        agent=step(1, "agent", name="one", asked="Why?", answered="Wait."),
    )  # fmt: skip
    second = run(
        step(5), step(1.5), span="b", marks=(mark(6, "y"), mark(2, "x")), outcomes=(outcome(0.0, at=8),),
        agent=step(4, "agent", name="two", asked="And?", error="lost"),
    )  # fmt: skip
    alone = run(span="c")
    for order in ([first, second, alone], [first, alone, second]):
        one, other = _joined(order)
        assert (other, one.key, one.agent.name, one.prompt) == (alone, ("t", "a"), "one", "Why?")
        assert (one.error, one.reply, one.agent.start_ns, one.agent.end_ns) == ("lost", "", S, 5 * S)
        assert [s.start_ns for s in one.steps] == [int(1.5 * S), 2 * S, 5 * S]
        assert [o.value for o in one.outcomes] == [0.0, 1.0]
        assert [json.loads(m.attributes["tfgrpo.live.choice"])["arm"] for m in one.marks] == ["x", "y"]


def test_of_many_places_that_are_refused_the_first_five_are_printed() -> None:
    report = IngestReport(
        spans=9, runs=1, known=2, scored=3, updates=4, refused_events={"held": 2, "duplicate": 1},
        refused={"no_run": [f"a:{n}" for n in range(5)], "bad_id": [f"b:{n}" for n in range(7)]},
    )  # fmt: skip
    assert list(ingest_lines(report)) == [
        "spans      9 read",
        "runs       1 stored, 2 known before; 3 new scores",
        "updates    4",
        "refused    7 bad_id: b:0, b:1, b:2, b:3, b:4 and 2 more",
        "refused    5 no_run: a:0, a:1, a:2, a:3, a:4",
        "refused    1 by the store: duplicate",
        "refused    2 by the store: held",
    ]
