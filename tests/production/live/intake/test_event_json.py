"""Events as JSON: what the schema accepts the store accepts, and the other way round."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live_events import RULES, Reporter, outcome
from support.reached import reached, reaches

from pytest_tfgrpo.privacy.redact import Redactor, find_secret
from pytest_tfgrpo.production.live.intake.event_json import event_of, event_to_wire
from pytest_tfgrpo.production.live.records import LiveEvent
from pytest_tfgrpo.production.live.store.event_text import (
    KEY_CHARS,
    TEXT_CHARS,
    stored_key,
    stored_name,
    stored_text,
)
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

SECRET = "sk-" + "a1B2" * 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LiveStore]:
    with closing(open_live_store(tmp_path / "live.db", "shop")) as opened:
        yield opened


def each_kind() -> list[LiveEvent]:
    one = Reporter("a")
    events = [*one.whole(score=0.5)[:-1], one.event("safety", blocked=True), one.end(score=0.5)]
    return [*events, outcome("a", 0.5)]


def test_an_event_survives_json():
    for event in each_kind():
        assert event_of(json.loads(json.dumps(event_to_wire(event)))) == event


BAD = [
    ("/kind", {"kind": "dance"}),
    ("/attempt", {"attempt": "1"}),
    ("/attempt", {"attempt": 1.5}),
    ("/seq", {"seq": None}),
    ("/seq", {"seq": -2}),
    ("/seq", {"seq": 2**63 - 1}),
    ("/at", {"at": "noon"}),
    ("/run", {"run": 17}),
    ("/data/x", {"data": {"x": 1}}),
]


@pytest.mark.parametrize(("pointer", "change"), BAD)
def test_what_is_no_event_is_refused_by_the_schema_and_by_the_store(store, pointer, change):
    one = Reporter("a")
    start, turn = one.start(), one.turn()._replace(**change)
    with pytest.raises(ValueError, match=f"^#{pointer}"):
        event_of(event_to_wire(turn))
    refused = store.write([start, turn, *Reporter("b").whole()], rules=RULES, now=1.0).refused
    assert sum(refused.values()) == 1
    assert store.counts()["succeeded"] == 1, "the others are stored"


CHOICE = Reporter("a").choice().data
MISSHAPEN = [
    ("tool", {}),
    ("tool", {"name": 7}),
    ("tool", {"name": "search", "error": ValueError("x")}),
    ("safety", {}),
    ("choice", {}),
    ("choice", {**CHOICE, "arm": "unheard of"}),
    ("choice", {**CHOICE, "place": -1}),
    ("choice", {**CHOICE, "colour": 1}),
    ("choice", {**CHOICE, "probabilities": {"bare": math.nan, "learned": 1.0}}),
    ("choice", {**CHOICE, "probabilities": {"bare": "1", "learned": 1.0}}),
    ("choice", {**CHOICE, "arms": ["bare"]}),
    ("end", {}),
    ("end", {"status": "running"}),
    ("end", {"status": "finished"}),
    ("end", {"status": "failed", "reason": 3}),
    ("outcome", {}),
]


@pytest.mark.parametrize(("kind", "data"), MISSHAPEN)
def test_data_of_another_shape_is_refused_and_counted(store, kind, data):
    one = Reporter("a")
    events = [one.start(), one.event(kind, **data), one.turn(), one.end()]
    assert store.write(events, rules=RULES, now=1.0).refused == {"malformed": 1}
    (rollout,) = store.rollouts()
    assert (rollout.status.value, rollout.trace.turns) == ("succeeded", 1)


KINDS = ["start", "choice", "turn", "tool", "safety", "retry", "end", "outcome"]
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=3)
)
values = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=9), v, max_size=2),
    max_leaves=4,
)


@given(values, st.sampled_from(range(7)), st.sampled_from(KINDS))
def test_nothing_that_an_event_holds_breaks_its_batch(value, place, kind):
    store = open_live_store(None, "shop")
    one = Reporter("a")
    odd = one.event(kind)._replace(**{LiveEvent._fields[place]: value})
    report = store.write([odd, *Reporter("b").whole()], rules=RULES, now=1.0)
    assert "b" in [rollout.run for rollout in report.ended]
    store.close()


TEXTS = [
    "\ud800 alone",
    "nul \x00 in it",
    "'); DROP TABLE rollouts; --",
    "\u202egnp.exe",
    "\x1b[2J\x1b]0;title\x07",
    "🧵" * 50_000,
    "a" * 3_000_000,
    "",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_hostile_texts_are_stored_as_texts(store, text):
    one = Reporter(text)
    one.owner = f"owner {text}"
    events = [
        one.start(category=text, prompt=text), one.choice(), one.event("tool", name=text, error=text),
        one.end(status="failed", reason=text, reply=text, reply_chars=len(text)), outcome(text, 0.5),
    ]  # fmt: skip
    assert store.write(events, rules=RULES, now=1.0).refused == {}
    (rollout,) = store.rollouts()
    assert rollout.prompt == rollout.reply == stored_text(text)
    assert len(rollout.prompt) <= TEXT_CHARS
    assert max(len(rollout.run), len(rollout.category), len(rollout.reason)) <= KEY_CHARS
    assert (rollout.trace.reply_chars, rollout.trace.score) == (len(text), 0.5)


def test_secrets_are_taken_out_before_anything_is_stored(store):
    one = Reporter(f"ticket {SECRET}")
    one.owner = f"owner {SECRET}"
    events = [
        one.start(category=f"c {SECRET}", prompt=f"my key is {SECRET}"), one.choice(),
        one.event("tool", name=f"t {SECRET}", error=f"401 for {SECRET}"),
        one.end(reason=f"r {SECRET}", reply=f"do not use {SECRET}"),
    ]  # fmt: skip
    assert store.write(events, rules=RULES, now=1.0).refused == {}
    assert store.write([outcome(one.run, 0.5)], rules=RULES, now=1.0).refused == {}
    (rollout,) = store.rollouts()
    assert rollout.prompt == "my key is [redacted:api_key]"
    assert rollout.run.startswith("ticket [redacted:api_key] #")
    store.close()
    for file in store.path.parent.iterdir():
        assert SECRET.encode() not in file.read_bytes()


def test_a_secret_across_the_cut_is_taken_out_whole():
    for before in range(2, len(SECRET), 2):
        assert "sk" not in stored_text("a " * ((TEXT_CHARS - before) // 2) + SECRET)


def test_long_keys_that_begin_alike_stay_apart(store):
    names = ["k" * 300 + end for end in "ab"]
    store.write([event for name in names for event in Reporter(name).whole()], rules=RULES, now=1.0)
    store.write([outcome(names[0], 0.25)], rules=RULES, now=1.0)
    assert [rollout.trace.score for rollout in store.rollouts()] == [0.25, None]


PERSONAL = ("jane.roe@example.org", "4111 1111 1111 1111", "+49 30 901820", "DE89 3704 0044 0532 0130 00")


def test_personal_data_is_taken_out_before_anything_is_stored(store):
    said = "write to {}, card {}, call {}, account {}".format(*PERSONAL)
    one = Reporter(said)
    events = [
        one.start(category=said, prompt=said), one.choice(), one.event("tool", name=said, error=said),
        one.end(reason=said, reply=said),
    ]  # fmt: skip
    assert store.write(events, rules=RULES, now=1.0).refused == {}
    assert store.write([outcome(said, 0.5)], rules=RULES, now=1.0).refused == {}
    (rollout,) = store.rollouts()
    assert rollout.trace.score == 0.5
    kinds = ("email", "card", "phone", "iban")
    shown = "write to {}, card {}, call {}, account {}".format(*(f"[redacted:{kind}]" for kind in kinds))
    assert rollout.prompt == rollout.reply == shown
    assert rollout.run.startswith("write to [redacted:email], card ")
    store.close()
    for file in store.path.parent.iterdir():
        assert not [one for one in PERSONAL if one.encode() in file.read_bytes()]


secrets = st.text("0123456789abcdef", min_size=16, max_size=20).map("api_key={}".format)
secrets |= st.sampled_from(PERSONAL)


@reaches("kept", "a secret")
@given(st.text("abcXYZ019 _./#-:=", max_size=40) | st.text(max_size=20) | st.uuids().map(str) | secrets)
def test_a_key_is_kept_as_it_is_unless_it_looks_like_a_secret(key):
    kept = stored_key(key)
    hidden = Redactor().places(key)
    reached("kept" if kept == key else "a secret", kept == key or hidden)
    if kept == key:
        assert not find_secret(key)
        assert not hidden or re.fullmatch("[A-Za-z0-9_./#-]{0,14}|[0-9a-fA-F-]{0,64}", key)
    else:
        assert hidden or re.search("[\ud800-\udfff]", key)
    assert find_secret(kept) is None
    assert stored_key(key) == kept
    assert len(stored_name(key)) <= KEY_CHARS
