"""Traces in memory: which is silent longest, when all of one is here, and what there is no room for."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from support.loop_spans import AGENT, agent_trace, publish, span_id, trace_id

from pytest_tfgrpo.production.assembly import done_traces, open_traces
from pytest_tfgrpo.production.assembly.done_traces import DoneRun, DoneTraces, KeptTraces
from pytest_tfgrpo.production.assembly.open_traces import (
    DONE_S,
    OpenTrace,
    OpenTraces,
    SpansEvent,
    StreamTime,
)
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.span_events import decode_spans
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import NO_SPAN
from pytest_tfgrpo.telemetry.traces.turns import RefusedTrace, TraceSpan


def span(name: str, parent: str = "") -> TraceSpan:
    return TraceSpan(key=("t", name), parent=parent, name=name, start_ns=1, end_ns=2, attributes={})


def event(number: int, *spans: TraceSpan, size: int = 10) -> SpansEvent:
    return SpansEvent(id=f"e{number}", sequence=number, at=f"at {number}", size=size, spans=spans)


def test_time_goes_by_stamps_and_by_the_readers_clock_at_the_end_and_never_back() -> None:
    clock = [100.0]
    time = StreamTime(lambda: clock[0])
    time.saw(50.0)
    time.saw(40.0)
    assert time.now == 50.0
    assert time.at_end(ended=True) is False
    clock[0] = 103.0
    assert (time.at_end(ended=True), time.now) == (True, 53.0)
    clock[0] = 102.0
    assert (time.at_end(ended=True), time.now) == (False, 53.0)
    time.saw(60.0)
    clock[0] = 110.0
    assert (time.at_end(ended=True), time.now) == (True, 61.0)
    clock[0] = 120.0
    assert (time.at_end(ended=False), time.now) == (False, 61.0)
    clock[0] = 130.0
    assert (time.at_end(ended=True), time.now) == (False, 61.0)


@pytest.mark.parametrize(
    ("spans", "ended", "heads"),
    [
        ([span("a")], True, ["a"]),
        ([span("b", "a")], False, ["a"]),
        ([span("b", "a"), span("a")], True, ["a"]),
        ([span("a"), span("c", "b")], False, ["a", "b"]),
        ([span("a"), span("c", "b"), span("b", "a")], True, ["a", "b"]),
        ([span("a"), span("c", NO_SPAN)], True, sorted(["a", NO_SPAN])),
        ([span("c", NO_SPAN)], False, [NO_SPAN]),
    ],
)
def test_a_trace_has_ended_once_its_root_and_each_parent_are_here(
    spans: list[TraceSpan], ended: bool, heads: list[str]
) -> None:
    trace = OpenTrace(first=1, since=0.0, seen=0.0)
    for one in spans:
        trace.take([one])
    assert (trace.ended, trace.heads()) == (ended, heads)
    assert trace.fresh == {one.key[1] for one in spans}
    trace.fresh.clear()
    trace.take(spans)
    assert trace.fresh == set(), "they were here already"


@pytest.mark.parametrize(("spans", "size", "full"), [(2, 20, False), (3, 20, True), (1, 21, True)])
def test_a_trace_is_full_beyond_its_spans_or_bytes(
    spans: int, size: int, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_SPANS", 2)
    monkeypatch.setattr(open_traces, "MAX_TRACE_BYTES", 20)
    trace = OpenTrace(first=1, since=0.0, seen=0.0, size=size)
    trace.take([span(str(n)) for n in range(spans)])
    assert trace.full is full


def opened() -> OpenTraces:
    """Open a at 1, b at 2, c (whole) at 3, and a again at 4."""
    traces = OpenTraces()
    for number, (name, one) in enumerate(
        [("a", span("x", "y")), ("b", span("x", "y")), ("c", span("r")), ("a", span("y", "z"))], start=1
    ):
        traces.take(name, event(number, one), float(number))
    return traces


def test_the_trace_that_is_silent_longest_comes_first() -> None:
    traces = opened()
    assert (list(traces), len(traces), "a" in traces, "d" in traces) == (["b", "c", "a"], 3, True, False)
    assert traces.first(99) == 1
    found = traces.pop("a")
    assert found is not None
    assert (found.first, found.since, found.seen, found.at, found.size) == (1, 1.0, 4.0, "at 4", 20)
    assert found.events == {"e1": 1, "e4": 4}
    assert (traces.pop("a"), traces.first(99)) == (None, 2)
    assert (OpenTraces().first(99), list(OpenTraces().idle(9.0))) == (99, [])


@pytest.mark.parametrize(
    ("until", "idle", "settled"), [(1.9, [], []), (2.0, ["b"], []), (3.0, ["b", "c"], ["c"])]
)
def test_what_was_silent_since_a_time_is_taken(until: float, idle: list[str], settled: list[str]) -> None:
    def popped(traces: OpenTraces, which: str) -> list[str]:
        found = []
        for trace in getattr(traces, which)(until):
            traces.pop(trace)
            found.append(trace)
        return found

    assert popped(opened(), "idle") == idle
    assert popped(opened(), "settled") == settled


def test_a_child_that_comes_after_the_whole_has_it_wait_again() -> None:
    traces = opened()
    traces.take("c", event(5, span("s", "q")), 5.0)
    assert list(traces.settled(9.0)) == []
    traces.take("c", event(6, span("q", "r")), 6.0)
    assert next(traces.settled(9.0)) == "c"
    assert list(traces.settled(5.9)) == []


def test_what_may_have_come_just_now_is_not_silent() -> None:
    traces = opened()
    traces.looked(7.0, moved=False)
    assert traces.first(0) == 1
    assert next(traces.idle(3.0)) == "b"
    traces.take("b", event(5), 5.0)
    traces.looked(8.0, moved=True)
    assert [found.seen for found in map(traces.pop, ("a", "b", "c")) if found] == [4.0, 8.0, 3.0]


@pytest.mark.parametrize(
    ("most", "size", "gone"), [(3, 40, []), (2, 40, ["b"]), (3, 39, ["b"]), (3, 29, ["b", "c"])]
)
def test_what_there_is_no_room_for_goes_by_how_long_it_is_silent(
    most: int, size: int, gone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_TRACES", most)
    monkeypatch.setattr(open_traces, "MAX_BYTES", size)
    traces = opened()
    found = []
    for trace in traces.too_many():
        traces.pop(trace)
        found.append(trace)
    assert found == gone
    traces = opened()
    traces.again("late", OpenTrace(first=9, since=0.0, seen=0.0, size=1000))
    assert next(traces.too_many()) == "b"


def test_the_newest_revision_of_a_run_is_remembered_and_where_its_first_trajectory_is() -> None:
    done = DoneTraces()
    done.add("t", "s", DoneRun(2, "two"), 5.0, sequence=7)
    done.add("t", "s", DoneRun(1, "one"), 3.0)
    done.add("t", "r", DoneRun(1, "other"), 4.0)
    assert (done["t"].runs, done["t"].at) == ({"s": DoneRun(2, "two"), "r": DoneRun(1, "other")}, 5.0)
    done.add("t", "s", DoneRun(2, "again"), 6.0)
    assert done["t"].runs["s"].digest == "again"
    for sequence, first in ((9, 7), (4, 4)):
        done.published("t", sequence)
        assert done.first(99) == first
    done.published("nobody", 1)
    done.add("u", "s", DoneRun(1, ""), 6.0)
    assert done.first(99) == 4, "0 is not known"
    done.published("u", 3)
    assert done.first(99) == 3
    assert ("t" in done, done.get("x"), done.pop("x")) == (True, None, None)
    assert DoneTraces().first(99) == 99


@pytest.mark.parametrize(
    ("now", "most", "left"), [(DONE_S + 1, 9, "bc"), (DONE_S + 0.9, 9, "abc"), (5.0, 2, "bc")]
)
def test_what_was_done_long_ago_or_is_too_much_is_forgotten(
    now: float, most: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(done_traces, "MAX_DONE", most)
    done = DoneTraces()
    for at, trace in enumerate("abc", start=1):
        done.add(trace, "s", DoneRun(1, ""), float(at))
    done.forget(now)
    assert "".join(trace for trace in "abc" if trace in done) == left


@pytest.mark.parametrize(("most", "size", "left"), [(9, 30, "abc"), (9, 29, "bc"), (2, 30, "bc"), (9, 9, "")])
def test_of_traces_that_are_done_the_oldest_spans_go_first(
    most: int, size: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(done_traces, "MAX_TRACES", most)
    monkeypatch.setattr(done_traces, "MAX_KEPT_BYTES", size)
    kept = KeptTraces(cast("Bus", None))
    for trace in "abc":
        kept.keep(trace, OpenTrace(first=1, since=0.0, seen=0.0, size=10))
    assert "".join(trace for trace in "abc" if kept.pop(trace) is not None) == left
    for _ in range(9):
        kept.keep("a", OpenTrace(first=1, since=0.0, seen=0.0, size=10))
    assert (kept.pop("a") is not None) is (size >= 10), "one that is kept again counts once"


@pytest.mark.parametrize("kept_before", [False, True])
def test_a_trace_that_is_opened_again_has_what_came_before_as_if_it_were_not_new(
    local: Bus, kept_before: bool
) -> None:
    publish(local, *agent_trace(1)[:2], *agent_trace(2)[:1], *agent_trace(1)[2:])
    events = [one for one in local.replay("RL_SPANS") if trace_id(1).encode() in one.data]
    kept, size = KeptTraces(local), sum(len(one.data) for one in events[:3])
    if kept_before:
        found = OpenTrace(first=1, since=0.0, seen=0.0, size=size)
        for one in events[:3]:
            found.events[one.id] = one.sequence
            found.take(decode_spans(one.data)[1] or [])
        kept.keep(trace_id(1), found)
    again = kept.reopened(trace_id(1), events[3], since=0.0, now=7.0)
    assert (again.first, again.since, again.seen, again.size) == (events[3].sequence, 7.0, 7.0, size)
    assert (again.fresh, again.events) == (set(), {})
    again.take([agent_trace(1)[number] for number in (1, 3)])
    assert again.fresh == {span_id(AGENT)}, "the other one was here"
    assert kept.pop(trace_id(1)) is None
    later = kept.reopened(trace_id(1), events[3], since=9e9, now=7.0)
    assert (later.size, later.heads()) == (0, []), "its spans are older than that"


def test_of_what_is_refused_only_fresh_spans_are_told_and_none_for_coming_twice() -> None:
    trace, tool = OpenTrace(first=1, since=0.0, seen=0.0), {"gen_ai.operation.name": "execute_tool"}
    for _ in range(2):
        trace.take([replace(span(name), attributes=tool) for name in "ab"])
    trace.fresh = {"b"}
    assert [(one.reason, one.key) for one in trace.result().refused] == [(RefusedTrace.NO_RUN, ("t", "b"))]
