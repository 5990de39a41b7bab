"""Spans at the door: each is kept as it came, in events of a bounded size, and judged with its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.intake import NOW, TRACE, span, stored

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES, Bus
from pytest_tfgrpo.production.bus.streams import SPANS_SUBJECT
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts, forgotten_key, row_since
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.door.spans import LARGEST_GROUP
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, SpanEvent

LATER = ("2" * 32, "2" * 16)


def test_a_span_is_kept_with_its_events_its_parent_and_how_it_ended(intake: Intake, bus: Bus):
    events = (SpanEvent("first", NOW, {"n": 1}), SpanEvent("second", NOW + 5, {"text": "hello"}))
    given = replace(
        span(1, resource={"service.name": "a"}, n=7),
        parent="f" * 16,
        events=events,
        failed=True,
        message="no answer",
    )
    intake.spans([given])
    ((_, (kept,)),) = stored(bus)
    assert replace(kept, place="") == given


def test_a_user_who_has_a_known_name_gets_no_second_one(intake: Intake, bus: Bus, scrubber: LoopScrubber):
    intake.spans([span(1, enduser__id="cust-9938")])
    ((_, (kept,)),) = stored(bus)
    assert kept.attributes == {"enduser.id": scrubber.user_ref("cust-9938")}


def test_a_user_whom_one_span_names_is_taken_out_of_all_spans_of_the_trace(intake: Intake, bus: Bus):
    named = span(2, user__id="cust-9938")
    intake.spans([span(1, text="I am cust-9938"), named, span(3, text="cust-9938 asks")])
    assert not any(b"cust-9938" in event.data for event in bus.replay("RL_SPANS"))


@pytest.mark.parametrize(
    "given",
    [
        [{"session__id": "chat-17"}, {}],
        [{}, {"session__id": "chat-17"}],
        [{"resource": {"session.id": "chat-17"}}, {}],
        [{"session__id": 4711}, {}],
        [{"gen_ai__conversation__id": " chat-17 ", "langfuse__session__id": "other"}, {}],
        [{}, {"user__id": "ann"}],
        [{"user__id": "bob"}, {"resource": {"user.id": "ann"}}],
    ],
)
def test_whoever_any_span_or_resource_of_a_trace_names_is_who_it_is_about(
    intake: Intake, opt_outs: OptOuts, given: list[dict[str, Any]]
):
    for session in ("chat-17", "4711"):
        opt_outs.add(session=session)
    opt_outs.add(user="ann")
    result = intake.spans([span(n, **one) for n, one in enumerate(given)])
    assert (result.accepted, result.opted_out) == (0, 2)


@pytest.mark.parametrize(
    ("ends_s", "dropped"), [([0.0], True), ([0.25], False), ([1.0, 0.0], True), ([0.0, 1.0], True)]
)
def test_a_trace_is_as_old_as_its_first_span_that_ended(
    intake: Intake, bus: Bus, scrubber: LoopScrubber, ends_s: list[float], dropped: bool
):
    at = row_since(utc_time("2025-11-24T16:00:00.125Z"))
    bus.table(STATE).put(forgotten_key("user", scrubber.user_ref("ann")), at, 0)
    spans = [
        replace(span(n, user__id="ann"), start_ns=NOW * 10**9, end_ns=int((NOW + end) * 10**9))
        for n, end in enumerate(ends_s)
    ]
    assert intake.spans(spans).opted_out == (len(spans) if dropped else 0)


@pytest.mark.parametrize("where", ["attributes", "events"])
def test_an_event_has_as_many_spans_as_fit(intake: Intake, bus: Bus, where: str):
    text, resource = {"text": "x " * 30_000}, {"service.name": "a"}
    spans = [span(n, resource=resource, **(text if where == "attributes" else {})) for n in range(12)]
    if where == "events":
        spans = [replace(one, events=(SpanEvent("said", NOW, text),)) for one in spans]
    assert intake.spans(spans).accepted == 12
    assert [len(found) for _, found in stored(bus)] == [5, 5, 2]


def test_spans_that_json_makes_longer_are_all_kept_in_smaller_groups(intake: Intake, bus: Bus):
    resource = {"service.name": "a"}
    spans = [span(n, resource=resource, text="é" * 25_000) for n in range(11)]
    assert intake.spans(spans).accepted == 11
    assert max(len(event.data) for event in bus.replay("RL_SPANS")) <= LARGEST_GROUP < MAX_EVENT_BYTES
    assert sorted(int(one.key[1], 16) for _, found in stored(bus) for one in found) == [*range(11)]


def test_a_huge_span_loses_the_middle_of_the_texts_of_its_events_and_its_resource_too(
    intake: Intake, bus: Bus
):
    texts = {f"text{n}": "x " * 30_000 for n in range(20)}
    huge = replace(span(1, resource=texts), events=tuple(SpanEvent(name, NOW, texts) for name in "ab"))
    assert intake.spans([huge]).accepted == 1
    ((_, (kept,)),) = stored(bus)
    assert [event.name for event in kept.events] == ["a", "b"]
    for table in (kept.resource, *(event.attributes for event in kept.events)):
        assert table.keys() == texts.keys()
        assert all("characters left out" in text for text in table.values())


def test_a_span_that_cannot_be_kept_is_named_in_its_dead_letter(intake: Intake, bus: Bus):
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    nested = replace(span(1, deep=deep), place="request:1")
    large = replace(span(2, **{f"a{n}": "x" * 90 for n in range(12_000)}), place="request:2")
    of_another = [
        RefusedSpan(RefusedTrace.BAD_ID, "request:3", LATER),
        RefusedSpan(RefusedTrace.BAD_ID, "request:4", ("", "2" * 16)),
        RefusedSpan(RefusedTrace.BAD_ID, "request:5"),
    ]
    result = intake.spans([nested, large, *of_another, span(3)])
    assert (result.accepted, sorted(result.refused)) == (1, [0, 1, 2, 3, 4])
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert {letter.subject for letter in letters} == {SPANS_SUBJECT}
    assert [(letter.code, letter.message) for letter in letters] == [
        ("bad_id", f"span {LATER[1]} of trace {LATER[0]} at request:3"),
        ("bad_id", f"span {LATER[1]} of trace ? at request:4"),
        ("bad_id", "span ? of trace ? at request:5"),
        ("malformed", f"span {1:016x} of trace {TRACE} at request:1"),
        ("too_large", f"span {2:016x} of trace {TRACE} at request:2"),
    ]
    assert result.refused[0].message == "request:1: malformed"
    assert result.refused[1].message == "request:2: too_large"
