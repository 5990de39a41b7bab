"""What is kept of one event: its columns, and what of its payload."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.loop_events import EARLY, LATER, feedback, judged, trajectory

from pytest_tfgrpo.core.events import (
    MODEL_DEPLOYED,
    REWARD,
    SCHEMAS,
    TRAINING_REQUEST,
    EventRefusal,
    derived_id,
)
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.production.rewards.history import NormalizedScore
from pytest_tfgrpo.production.view.rows import ViewRow, redacted_kinds, row_of
from pytest_tfgrpo.production.view.wording import wording_of
from pytest_tfgrpo.storage.event_store import BusEvent

AT = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
PART = {"score": 0.5, "weight": 0.4, "source": "outcome"}


def row(event: BusEvent, at: float = AT) -> ViewRow:
    found = row_of(replace(event, sequence=9), at)
    assert isinstance(found, ViewRow), found
    return found


def columns(event: BusEvent, *names: str, at: float = AT) -> list[Json]:
    return [row(event, at).columns[name] for name in names]


def changed(event: BusEvent, **more: Json) -> BusEvent:
    return replace(event, data=json.dumps({**json.loads(event.data), **more}).encode())


def own(parts: dict[str, Json] | None = None, **more: Json) -> BusEvent:
    """Return a reward as the project's evaluator publishes it, with other metadata or fields."""
    parts = parts or {"task_completion": PART}
    metadata = {
        "evaluator": "tfgrpo",
        "revision": 2,
        "ordinal": 7,
        "turns": 3,
        "domain": "coding",
        "joined": [],
    }
    payload: dict[str, Json] = {
        "reward_id": derived_id("reward", derived_id("a"), "2"),
        "trajectory_id": derived_id("a"),
        "session_id": "chat-17",
        "timestamp": LATER,
        "reward_components": parts,
        "total_reward": 0.5,
        "normalization": {"normalized_total": 0.25, "components": {}},
        "metadata": metadata | more.pop("metadata", {}),
        **more,
    }
    return BusEvent(id=derived_id("e"), subject=REWARD, time=LATER, data=json.dumps(payload).encode())


def test_a_trajectory_keeps_who_where_and_how_it_ended() -> None:
    event = trajectory(
        "a",
        user="u-1",
        turns=3,
        text="said",
        metadata={"trace_id": "t" * 32, "revision": 4},
        task_status="failed",
    )
    found = row(event)
    assert found.table == "trajectories"
    slim = json.loads(found.columns.pop("slim"))
    assert found.columns == {
        "id": derived_id("a"),
        "seq": 9,
        "at": AT,
        "time": EARLY,
        "session": "chat-17",
        "user_ref": "u-1",
        "domain": "coding",
        "task_key": "task-a",
        "policy_version": "v1",
        "started": "2025-12-08T12:00:00.000Z",
        "ended": found.columns["ended"],
        "turns": 3,
        "trace_id": "t" * 32,
        "redacted": None,
        "revision": 4,
        "silent": 0,
        "blocked": 0,
        "agent": "support-bot",
        "profile": "developer",
        "model": None,
        "wording": None,
    }
    assert slim == {
        "trajectory_id": derived_id("a"),
        "session_id": "chat-17",
        "end_timestamp": found.columns["ended"],
        "task_context": {"domain": "coding", "task_key": "task-a"},
        "outcome": {"task_status": "failed"},
        "metadata": {"policy_version": "v1"},
    }


def test_what_a_trajectory_says_of_itself_counts_where_it_can() -> None:
    odd = trajectory("a", text="", metadata={"trace_id": 5, "revision": "two"})
    assert columns(odd, "trace_id", "revision", "silent") == [None, 1, 1]
    late = json.loads(row(trajectory("a"), at=0.0).columns["slim"])["end_timestamp"]
    assert late == "1970-01-01T00:00:00.000Z"
    assert columns(trajectory("a"), "time", at=0.0) == ["1970-01-01T00:00:00.000Z"]
    undated = replace(trajectory("a"), time="yesterday", arrived=60.0)
    assert columns(undated, "time") == ["1970-01-01T00:01:00.000Z"]


def test_a_trajectory_keeps_its_model_that_it_was_blocked_and_a_digest_of_its_task() -> None:
    task: dict[str, Json] = {"domain": "coding", "instructions": "Which orders?"}
    event = trajectory("a", metadata={"model": "small"}, task=task, safety_blocked=True)
    assert columns(event, "model", "blocked", "wording", "task_key") == [
        "small", 1, wording_of("which ORDERS?"), None,
    ]  # fmt: skip


@pytest.mark.parametrize(("turns", "kept"), [(10_000, True), (10_001, False)])
def test_a_trajectory_has_so_many_turns_at_most(turns: int, kept: bool) -> None:
    found = row_of(trajectory("a", turns=turns), AT)
    assert isinstance(found, ViewRow) is kept
    if isinstance(found, EventRefusal):
        assert (found.pointer, found.message) == ("/data/turns", "is no list of at most 10000 turns")


def test_feedback_keeps_its_numbers_and_of_texts_only_the_start_of_a_label() -> None:
    found = row(feedback("f", "rating", "a", rating=4, source="ui"))
    assert found.table == "feedback"
    slim = json.loads(found.columns.pop("slim"))
    assert found.columns == {
        "id": derived_id("fb", "f"),
        "event_id": feedback("f", "rating", "a").id,
        "seq": 9,
        "at": AT,
        "time": LATER,
        "trajectory_id": derived_id("a"),
        "session": None,
        "redacted": None,
        "type": "rating",
    }
    assert (slim["rating"], slim["timestamp"], slim["type"]) == (4, LATER, "rating")
    label = json.loads(row(feedback("f", "label", "a", text="x" * 501)).columns["slim"])
    assert label["text"] == "x" * 500
    assert "text" not in json.loads(row(feedback("f", "correction", "a", text="x")).columns["slim"])
    assert json.loads(row(feedback("f", "thumbs_up", "a"), at=60.0).columns["slim"])["timestamp"] < LATER


def test_a_reward_of_another_evaluator_is_no_revision_and_its_reasons_are_cut() -> None:
    part = {**PART, "reasoning": "x" * 501}
    event = changed(judged("j", "a", style=0.5), reward_components={"style": part}, total_reward=0.5)
    found = row(event)
    kept = ("own", "revision", "ordinal", "total", "normalized", "session")
    assert [found.columns[name] for name in kept] == [0, 0, 0, 0.5, None, "chat-17"]
    assert json.loads(found.columns["slim"]) == {
        "reward_id": derived_id("judged", "j"),
        "trajectory_id": derived_id("a"),
        "timestamp": LATER,
        "reward_components": {"style": {**PART, "reasoning": "x" * 500}},
        "metadata": {"evaluator": "judge-1"},
    }


def test_a_reward_of_ours_keeps_what_its_next_revision_needs() -> None:
    fast = {"score": 0.5, "weight": 0.4, "source": "turns", "reasoning": "3 turns"}
    parts = {"task_completion": {**PART, "reasoning": "done"}, "efficiency": fast}
    normal = dict.fromkeys(NormalizedScore.__dataclass_fields__, 0.5)
    event = own(parts, normalization={"normalized_total": 0.25, "components": {"efficiency": normal}})
    found = row(event)
    kept = ("id", "own", "revision", "ordinal", "total", "normalized", "redacted")
    assert [found.columns[name] for name in kept] == [
        json.loads(event.data)["reward_id"],
        1,
        2,
        7,
        0.5,
        0.25,
        None,
    ]
    slim = json.loads(found.columns["slim"])
    assert slim["reward_components"] == {"task_completion": PART, "efficiency": fast}
    assert slim["normalization"] == {"components": {"efficiency": normal}}
    assert slim["metadata"] == json.loads(event.data)["metadata"]


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"turns": -1}},
        {"metadata": {"turns": 2.0}},
        {"metadata": {"ordinal": True}},
        {"metadata": {"ordinal": 2**53 + 1}},
        {"metadata": {"domain": 5}},
        {"metadata": {"joined": "a"}},
        {"parts": {"style": {**PART, "score": 1.1}}, "total_reward": 1.1},
        {"parts": {"style": {**PART, "score": -0.1}}, "total_reward": -0.1},
        {"parts": {"style": {**PART, "weight": 2.0**54}}},
        {"parts": {"style": PART, "efficiency": PART}},
        {
            "parts": {"efficiency": PART},
            "normalization": {"normalized_total": 0.0, "components": {"efficiency": {}}},
        },
        {"total_reward": 0.51},
        {"total_reward": float("nan")},
        {"session_id": 2**54},
        {"session_id": -(2**54)},
        {"session_id": ["a"]},
    ],
)
def test_what_neither_the_next_revision_nor_a_column_could_use_is_refused(more: dict[str, Json]) -> None:
    found = row_of(own(**more), AT)
    assert isinstance(found, EventRefusal)
    assert (found.fault, found.pointer) == ("schema", "")
    assert found.message.startswith("is no event: ")


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"evaluator": "another"}},
        {"metadata": {"revision": 3}},
        {"metadata": {"ordinal": "7"}},
    ],
)
def test_a_reward_that_only_looks_like_ours_is_checked_as_anybodys(more: dict[str, Json]) -> None:
    parts = {"style": {**PART, "source": "judge"}}
    event = changed(own(parts, **more), reward_type="dense")
    found = row_of(replace(event, sequence=9), AT)
    assert not isinstance(found, ViewRow) or found.columns["own"] == 0


def test_letters_audits_and_other_events_keep_what_is_counted() -> None:
    letter = dead_event(
        DeadLetter(code="schema", message="m", stream="S", subject="s", id="i", data=b"x"), LATER
    )
    assert columns(letter, "seq", "id", "code", "stream", "subject", "event_id") == [
        9, letter.id, "schema", "S", "s", "i",
    ]  # fmt: skip
    assert row(letter).table == "dead"
    said = {"action": "opt_out", "what": "trace", "ref": None}
    audit = BusEvent(id=derived_id("x"), subject=AUDIT_SUBJECT, time=LATER, data=json.dumps(said).encode())
    assert row(audit).columns == {
        "seq": 9, "id": audit.id, "at": AT, "action": "opt_out", "what": "trace", "ref": "",
        "event_id": audit.id,
    }  # fmt: skip
    told = json.dumps({**said, "ref": "r"}).encode()
    assert columns(replace(audit, data=told), "ref") == ["r"]
    for subject, table in ((MODEL_DEPLOYED, "deployments"), (TRAINING_REQUEST, "training")):
        example = json.dumps(load_schema(SCHEMAS[subject])["examples"][0]).encode()
        event = BusEvent(id=derived_id("y"), subject=subject, time=LATER, data=example)
        assert row(event) == ViewRow(table, {"seq": 9, "id": event.id, "at": AT, "redacted": None})


def test_a_value_that_was_taken_out_counts_once_however_often_it_stands_there() -> None:
    data = b"[redacted:email:0a1b2c] " * 2 + b"[redacted:email:ffffff] [redacted:card:0a1b2c] [redacted:X]"
    assert redacted_kinds(data) == '{"card":1,"email":2}'
    assert redacted_kinds(b"nothing") is None
