"""The door: what is let in is durable and redacted, and what is refused is named."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.buses import EmbeddedPlace
from support.intake import KEY, TRACE, payload, span, stored

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import (
    FEEDBACK,
    REWARD,
    TRAJECTORY,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES, Bus, check_events
from pytest_tfgrpo.production.bus.streams import SPANS_SUBJECT, STREAMS, by_subject
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import SWEEP, OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.span_events import decode_spans
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


def test_spans_of_a_trace_and_resource_are_one_event_and_a_repeat_stores_nothing(intake, bus):
    one, other = {"service.name": "a"}, {"service.name": "b"}
    spans = [span(1, resource=one), span(2, resource=one), span(3, resource=other), span(4, "1" * 32)]
    for _ in range(2):
        result = intake.spans(spans)
        assert (result.accepted, result.opted_out, result.refused) == (4, 0, {})
    found = stored(bus)
    assert [(trace, len(spans)) for trace, spans in found] == [(TRACE, 2), (TRACE, 1), ("1" * 32, 1)]
    assert found[0][1][0].resource == one
    second = found[0][1][1]
    assert replace(second, place="") == span(2, resource=one)


def test_the_root_of_a_trace_comes_after_the_spans_that_came_with_it(intake, bus):
    child = replace(span(2, resource={"service.name": "b"}), parent="1" * 16)
    sibling = replace(span(3, resource={"service.name": "a"}), parent="1" * 16)
    intake.spans([span(1, resource={"service.name": "a"}), child, sibling])
    assert [one.key[1] for _, spans in stored(bus) for one in spans] == [
        child.key[1], sibling.key[1], span(1).key[1]
    ]  # fmt: skip


def test_payloads_of_each_subject_become_events_whose_ids_follow_from_theirs(intake, bus):
    for subject, stream, space, name in (
        (TRAJECTORY, "RL_TRAJECTORIES", "trajectory", "trajectory_id"),
        (FEEDBACK, "RL_FEEDBACK", "feedback", "feedback_id"),
        (REWARD, "RL_REWARDS", "reward-event", "reward_id"),
    ):
        value = payload(subject)
        result = intake.payloads(subject, [value, json.dumps(value).encode()])
        assert (result.accepted, result.opted_out, result.refused) == (2, 0, {})
        (event,) = bus.replay(stream)
        assert event.id == derived_id(space, value[name])
        loud = payload(subject, **{name: value[name].upper()})
        assert intake.payloads(subject, [loud]).accepted == 1
        assert bus.last(stream) == 1, "it is the same in capitals"
        checked = check_event(wrap(subject, json.loads(event.data), event_id=event.id, at=event.time))
        assert isinstance(checked, RlEvent)
        assert checked.data[name] == value[name]
        assert event.time == utc_time(value.get("end_timestamp", value.get("timestamp")))


def test_nobody_else_gives_a_reward_the_id_that_the_evaluator_will_give(intake, bus):
    of = payload(REWARD)["trajectory_id"]
    values = [payload(REWARD, reward_id=derived_id("reward", of, str(n)).upper()) for n in (1, 8)]
    values.append(payload(REWARD, reward_id=derived_id("reward", of, "77"), metadata={"revision": 77}))
    result = intake.payloads(REWARD, values)
    assert [one.pointer for one in result.refused.values()] == ["/reward_id"] * 3
    assert not list(bus.replay("RL_REWARDS"))


def test_what_is_refused_is_named_by_its_place_and_kept_redacted(intake, bus):
    broken = payload(FEEDBACK, type="rating", rating=9, text=f"my key {KEY}")
    result = intake.payloads(
        FEEDBACK, [payload(FEEDBACK), broken, b"{", payload(FEEDBACK, rating=math.nan), 3]
    )
    assert result.accepted == 1
    assert {index: (one.fault.value, one.pointer) for index, one in result.refused.items()} == {
        1: ("schema", "/rating"),
        2: ("schema", ""),
        3: ("not_finite", "/rating"),
        4: ("schema", ""),
    }
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert [letter.code for letter in letters] == ["schema", "schema", "not_finite", "schema"]
    assert letters[0].pointer == "/rating"
    assert letters[0].subject == FEEDBACK
    assert letters[0].message == result.refused[1].message != ""
    assert [letter.size for letter in letters[1:2]] == [1]
    assert json.loads(letters[0].data)["text"].startswith("my key [redacted:")


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("place", ["metadata", ""])
def test_what_is_refused_keeps_no_id_of_its_user_and_not_of_who_opted_out(intake, bus, opt_outs, place, raw):
    said = {"user_id": "zoe-99999"}
    broken = payload(FEEDBACK, text="I am zoe-99999", rating=9, **({place: said} if place else said))
    given = json.dumps(broken).encode() + b"}" if raw else broken
    assert len(intake.payloads(FEEDBACK, [given]).refused) == 1
    (event,) = bus.replay("RL_DEAD")
    assert b"I am u-" in event.data
    assert b"zoe-99999" not in event.data
    opt_outs.add(user="zoe-99999")
    assert intake.payloads(FEEDBACK, [given]).opted_out == 1
    assert bus.last("RL_DEAD") == 1


def test_a_span_that_is_refused_is_a_dead_letter_with_its_reason(intake, bus):
    result = intake.spans([RefusedSpan(RefusedTrace.BAD_ID, "request:1"), span()])
    assert result.accepted == 1
    assert result.refused[0].message == "request:1: bad_id"
    (event,) = bus.replay("RL_DEAD")
    assert dead_letter_of(event).code == "bad_id"


def test_large_traces_are_split_and_a_huge_span_loses_the_middle_of_its_texts(intake, bus):
    many = [span(n, text="w é" * 20_000) for n in range(30)]
    huge = span(99, "3" * 32, **{f"text{n}": "漢" * 20_000 for n in range(40)}, end="x" * 10_000_000)
    assert intake.spans([*many, huge]).accepted == 31
    found = list(bus.replay("RL_SPANS"))
    assert max(len(event.data) for event in found) <= MAX_EVENT_BYTES
    assert len(found) > 3
    spans = [one for _, spans in stored(bus) for one in spans]
    assert sorted(int(one.key[1], 16) for one in spans) == [*range(30), 99]
    assert "characters left out" in spans[-1].attributes["text0"]


def test_a_span_that_does_not_fit_at_all_is_refused_as_too_large(intake, bus):
    result = intake.spans([span(1, **{f"a{n}": "x" * 90 for n in range(12_000)}), span(2)])
    assert result.accepted == 1
    assert result.refused[0].fault.value == "too_large"
    assert [dead_letter_of(event).code for event in bus.replay("RL_DEAD")] == ["too_large"]


@pytest.mark.parametrize("stream", ["RL_SPANS", "RL_FEEDBACK"])
def test_what_the_bus_does_not_store_is_not_acknowledged_and_a_repeat_stores_it_once(
    intake, bus, stream, monkeypatch
):
    def bring() -> tuple[int, int, int]:
        if stream == "RL_SPANS":
            result = intake.spans([span(1), span(2, "2" * 32), span(3, "3" * 32, tfgrpo__opt_out=True)])
        else:
            result = intake.payloads(FEEDBACK, [payload(FEEDBACK), b"{"])
        return result.accepted, result.opted_out, len(result.refused)

    def fails_halfway(events, puts=()):
        kept(events[:1], puts)
        raise BusError("no space left on the disk")

    kept = bus.publish
    with monkeypatch.context() as patch:
        patch.setattr(bus, "publish", fails_halfway)
        with pytest.raises(BusError, match="no space left"):
            bring()
    for _ in range(2):
        assert bring() == ((2, 1, 0) if stream == "RL_SPANS" else (1, 0, 1))
    counts = [len(list(bus.replay(name))) for name in (stream, "RL_AUDIT", "RL_DEAD")]
    assert counts == ([3, 2, 0] if stream == "RL_SPANS" else [1, 0, 1])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters() | st.sampled_from("\x00\ud800\udfff")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(["user.id", "session.id", "gen_ai.input.messages", "tfgrpo.opt_out", "x", "password"])


class _Taking:
    """A bus that keeps what is published."""

    def __init__(self) -> None:
        self.events: list[BusEvent] = []

    def publish(self, events, puts=()):
        check_events(events, by_subject(STREAMS))
        self.events += events
        return []

    def table(self, name):
        return self

    def get(self, key):
        return (b"due", 1) if key == SWEEP else (None, 0)

    def watch(self, prefix):
        return self

    def changes(self, timeout_s):
        return []

    def replay(self, stream, **since):
        return []

    def last(self, stream):
        return 0


@given(st.dictionaries(names, json_values | json_values.map(json.dumps)), json_values)
def test_whatever_comes_is_accepted_opted_out_or_refused(attributes, value):
    bus = _Taking()
    scrubber = LoopScrubber(b"k" * 32)
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    spans = [span(1, **attributes), span(2, "2" * 32, resource=attributes), span(3, "3" * 32, x=value)]
    result = intake.spans(spans)
    assert result.accepted + result.opted_out + len(result.refused) == 3
    values = [value, payload(FEEDBACK, metadata=value), payload(TRAJECTORY, session_id=value)]
    result = intake.payloads(FEEDBACK, [*values, *(json.dumps(one).encode() for one in values)])
    assert result.accepted + result.opted_out + len(result.refused) == 6
    for event in bus.events:
        if event.subject == SPANS_SUBJECT:
            decode_spans(event.data)


def test_payloads_nested_too_deeply_are_refused_and_kept(intake, bus):
    deep: object = 1
    for _ in range(3000):
        deep = [deep]
    values = [payload(FEEDBACK, metadata={"a": deep}), {"opt_out": deep}, b"[" * 10**6, b"[]"]
    result = intake.payloads(FEEDBACK, values)
    assert [one.fault.value for one in result.refused.values()] == ["schema"] * 4
    assert len(list(bus.replay("RL_DEAD"))) == 4
