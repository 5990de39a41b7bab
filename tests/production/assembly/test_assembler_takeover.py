"""Assemblers that take over, that forget, and that run out of room."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
from support.assemblers import IDLE_S, agents, assembler, drain, rest, state
from support.buses import BusPlace, Clock, EmbeddedPlace, bytes_in
from support.loop_events import judged
from support.loop_spans import (
    AGENT,
    ROOT,
    a_span,
    agent_trace,
    evaluation,
    letters,
    message,
    opt_out_event,
    payloads,
    publish,
    published,
    span_id,
    trace_id,
)

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.assembly import assembly, open_traces
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts, forgotten_key, row_since
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.storage.event_store import STATE

# what is withdrawn


def test_nothing_is_kept_of_a_trace_that_opts_out(embedded: EmbeddedPlace, clock: Clock) -> None:
    bus = embedded.open()
    worker = assembler(bus, clock)
    for trace in (1, 2, 3):
        publish(bus, *agent_trace(trace)[: 5 if trace == 2 else 4])
    publish(bus, a_span(2, 21, parent=AGENT, at=500, events=(evaluation(1, name="opted"),)))
    drain(worker)
    assert len(payloads(bus)) == len(payloads(bus, "RL_FEEDBACK")) == 1
    said, of = judged("of 2", "x", tone=1.0), payloads(bus)[0]["trajectory_id"]
    bus.publish([replace(said, data=said.data.replace(derived_id("x").encode(), of.encode()))])
    bus.publish([opt_out_event(1), opt_out_event(2)])
    drain(worker)
    worker.close()
    again = assembler(bus, clock, "two")
    publish(bus, agent_trace(1)[4], a_span(1, 9, "chat", parent=AGENT, at=800))
    publish(bus, agent_trace(3)[4])
    rest(again, clock, 6)
    again.step()
    assert agents(bus) == [(trace_id(3), span_id(AGENT), 2)]
    assert payloads(bus, "RL_FEEDBACK") == payloads(bus, "RL_REWARDS") == []
    again.close()
    assert bytes_in(embedded.folder, b"question 1") == bytes_in(embedded.folder, b"question 2") == []
    assert bytes_in(embedded.folder, b"question 3")


def test_no_trajectory_waits_in_memory_of_a_trace_that_opts_out_at_once(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    publish(local, *agent_trace(1))
    local.publish([opt_out_event(1)])
    drain(worker)
    assert payloads(local) == []
    assert worker._assembly is not None
    assert not worker._assembly._runs


def test_a_run_whose_session_was_withdrawn_meanwhile_is_dropped(local: Bus, clock: Clock) -> None:
    asked = []

    def refuses(session: str, user: str, ended_s: float) -> bool:
        asked.append((session, user, ended_s))
        return session == "session 1"

    told: list[str] = []
    worker = assembler(local, clock, refuses=refuses, forgo=told.extend)
    publish(local, *agent_trace(1), *agent_trace(2, policy_version="v1"))
    given = {"user.id": "u-1"}
    publish(local, a_span(3, 3, "chat", parent=AGENT), a_span(3, AGENT, "invoke_agent", attributes=given))
    drain(worker)
    worker.close()
    assert agents(local) == [(trace_id(2), span_id(AGENT), 2), (trace_id(3), span_id(AGENT), 1)]
    assert asked[0] == ("session 1", "", 1_800_000_012.0)
    assert (trace_id(3), "u-1", 1_800_000_003.0) in asked
    assert told == [trajectory_id(trace_id(1), span_id(AGENT))]
    assert [trace_id(1) in event.data.decode() for event in local.replay("RL_SPANS")] == [False] * 7


def test_what_is_withdrawn_while_it_is_published_goes_again(local: Bus, clock: Clock) -> None:
    gone: list[str] = []
    told: list[str] = []
    worker = assembler(local, clock, refuses=lambda session, *_: session in gone, forgo=told.extend)
    publish(local, *agent_trace(1), *agent_trace(2))
    publish_all = worker._lease.publish

    def published_then_withdrawn(*said: Any) -> list[int] | None:
        found = publish_all(*said)
        gone.append("session 1")
        return found

    worker._lease.publish = published_then_withdrawn  # type: ignore[method-assign]
    drain(worker)
    worker.close()
    assert agents(local) == [(trace_id(2), span_id(AGENT), 2)]
    assert told == [trajectory_id(trace_id(1), span_id(AGENT))]


def test_the_runs_that_an_open_trace_may_become_are_told_when_it_opts_out(local: Bus, clock: Clock) -> None:
    told: list[str] = []
    worker = assembler(local, clock, forgo=told.extend)
    publish(local, *agent_trace(1)[:4])
    drain(worker)
    local.publish([opt_out_event(1)])
    drain(worker)
    assert told == [trajectory_id(trace_id(1), span_id(number)) for number in (ROOT, AGENT)]


def test_who_takes_over_overwrites_what_the_one_before_had_still_to(
    embedded: EmbeddedPlace, clock: Clock
) -> None:
    bus = embedded.open()
    worker = assembler(bus, clock)
    publish(bus, *agent_trace(1)[:4])
    drain(worker)
    bus.publish([opt_out_event(1)])
    publish(bus, *agent_trace(2))
    drain(worker)
    again = assembler(bus, clock, "two")
    again.step()
    rest(again, clock, 16)
    rest(again, clock, 6)
    again.close()
    assert agents(bus) == [(trace_id(2), span_id(AGENT), 2)]
    assert bytes_in(embedded.folder, b"question 1") == []


@pytest.mark.parametrize("whose", ["session", "user"])
def test_what_is_forgotten_while_its_trace_is_open_is_never_published(
    embedded: EmbeddedPlace, clock: Clock, whose: Literal["session", "user"]
) -> None:
    bus, scrubber = embedded.open(), LoopScrubber(b"k" * 32)
    opt_outs = OptOuts(bus, scrubber)
    worker = assembler(bus, clock, refuses=opt_outs.withdrawn)
    intake = Intake(bus, scrubber, opt_outs)
    for trace in (1, 2):
        *inner, agent, _ = agent_trace(trace)
        intake.spans([*inner, replace(agent, attributes={**agent.attributes, "user.id": f"ann {trace}"})])
    drain(worker)
    ref = scrubber.session_ref("session 1") if whose == "session" else scrubber.user_ref("ann 1")
    bus.table(STATE).put(forgotten_key(whose, ref), row_since("2099-01-01T00:00:00Z"), 0)
    publish(bus, *(agent_trace(trace)[4] for trace in (1, 2)))
    drain(worker)
    worker.close()
    assert agents(bus) == [(trace_id(2), span_id(AGENT), 2)]
    assert bytes_in(embedded.folder, b"question 1") == []


# limits


def test_a_trace_that_is_too_large_or_never_rests_is_taken_as_it_stands(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_SPANS", 50)
    worker = assembler(local, clock)
    publish(local, a_span(1, 2, "invoke_agent", parent=1, lasts=500))
    publish(local, *(a_span(1, number, "execute_tool", parent=2) for number in range(10, 60)))
    drain(worker)
    assert agents(local) == [(trace_id(1), span_id(2), 50)]
    for number in range(10, 140):
        publish(local, a_span(2, 2 if number == 10 else number, "invoke_agent", parent=1, at=number))
        clock.now += IDLE_S / 2
        worker.step()
    assert {trace for trace, _, _ in agents(local)} == {trace_id(1), trace_id(2)}


def test_what_there_is_no_room_for_is_taken_as_it_stands(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_TRACES", 10)
    for trace in range(1, 31):
        publish(local, *agent_trace(trace)[:4])
    worker = assembler(local, clock)
    drain(worker)
    assert [trace for trace, _, _ in agents(local)] == [trace_id(trace) for trace in range(1, 21)]
    assert state(local)["spans_from"] == 81


def test_a_trajectory_of_many_long_texts_is_cut_until_it_is_allowed(local: Bus, clock: Clock) -> None:
    long = {"gen_ai.output.messages": message("assistant", "word " * 12_000)}
    publish(local, *(a_span(1, n, "chat", parent=2, attributes=long) for n in range(10, 60)))
    publish(local, a_span(1, 2, "invoke_agent", lasts=100))
    drain(assembler(local, clock))
    (event,) = local.replay("RL_TRAJECTORIES")
    assert 200_000 < len(event.data) <= 1_000_000
    assert agents(local) == [(trace_id(1), span_id(2), 50)]


# who takes over


def test_one_process_works_and_another_takes_over_where_it_was(place: BusPlace) -> None:
    bus, other, clock = place.open(), place.open(), Clock()
    one, two = assembler(bus, clock), assembler(other, clock, "two")
    publish(bus, *agent_trace(1), *agent_trace(2)[:3])
    drain(one)
    assert two.step() == 0
    publish(bus, *agent_trace(2)[3:])
    clock.now += 16
    assert two.step() > 0
    assert one.step() == 0
    one.close()
    drain(two)
    two.close()
    assert agents(bus) == [(trace_id(n), span_id(AGENT), 2) for n in (1, 2)]
    three = assembler(bus, clock, "three")
    assert three.step() == 0
    publish(bus, *agent_trace(3))
    assert three.step() == 5
    assert len(payloads(bus)) == 3


def test_a_restart_after_hours_publishes_what_was_open_and_nothing_twice(local: Bus, clock: Clock) -> None:
    def run(owner: str) -> None:
        worker = assembler(local, clock, owner)
        rest(worker, clock, 16)
        rest(worker, clock)

    publish(local, *agent_trace(1)[:4])
    drain(worker := assembler(local, clock))
    publish(local, *agent_trace(2))
    drain(worker)
    clock.now += 5 * 3600
    publish(local, agent_trace(3)[0])
    run("two")
    before = published(local)
    assert agents(local) == [
        (trace_id(2), span_id(AGENT), 2), (trace_id(1), span_id(AGENT), 2), (trace_id(3), "", 1)
    ]  # fmt: skip
    clock.now += 5 * 3600
    run("three")
    assert published(local) == before


@pytest.mark.parametrize("back_s", [30.0, 5 * 3600.0])
def test_a_clock_that_is_set_back_loses_and_repeats_nothing(
    embedded: EmbeddedPlace, clock: Clock, back_s: float
) -> None:
    bus, steady = embedded.open(), Clock()
    worker = assembler(bus, steady)
    publish(bus, *agent_trace(1)[:4])
    drain(worker)
    clock.now -= back_s
    publish(bus, *agent_trace(2)[:4])
    drain(worker)
    steady.now += 59
    publish(bus, agent_trace(1)[4], *agent_trace(3)[:3])
    drain(worker)
    steady.now += 2
    drain(worker)
    publish(bus, *agent_trace(3)[3:])
    again = assembler(bus, steady, "two")
    steady.now += 16
    again.step()
    rest(again, steady)
    assert sorted(agents(bus)) == [(trace_id(n), span_id(AGENT), 2) for n in (1, 2, 3)]


def test_what_a_bus_stored_without_the_place_is_not_published_again(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "atomic", False)
    both = a_span(1, 12, "invoke_agent", parent=ROOT, at=3, lasts=100)
    graded = a_span(1, 20, parent=12, events=(evaluation(1),))
    publish(local, *agent_trace(1)[:4], both, graded, agent_trace(1)[4])
    good = assembler(local, clock)
    drain(good)
    whole = published(local)
    assert len(whole) == 3
    good.close()
    # the same once more, stopped after the first trajectory, and long after ids are compared
    table = local.table(STATE)
    _, revision = table.get("lease.assembler")
    row = {"owner": "", "state": {"sure_to": 0}}
    table.put("lease.assembler", json.dumps(row).encode(), revision)
    local.delete("RL_TRAJECTORIES", [whole[1][0]])
    clock.now += 5 * 3600
    drain(assembler(local, clock, "two"))
    assert sorted(set(published(local))) == sorted(whole)
    assert [one["metadata"]["span_id"] for one in payloads(local)] == [span_id(AGENT), span_id(12)]


def test_texts_that_no_span_should_have_do_no_harm(local: Bus, clock: Clock) -> None:
    deep = "[" * 100 + "]" * 100
    hostile = ["\x00\ud800", "NaN", "[NaN, 1e999]", deep, "x" * 60_000, '{"a": 1' + "0" * 400 + "}"]
    for trace, text in enumerate(hostile, 1):
        given = {"gen_ai.tool.name": text, "gen_ai.tool.call.arguments": text, "session.id": text}
        notes = {"tfgrpo.domain": text, "tfgrpo.lessons": text, "tfgrpo.outcome.completion": text}
        publish(local, a_span(trace, 3, "execute_tool", parent=2, attributes=given))
        publish(local, a_span(trace, 2, "invoke_agent", attributes={**notes, **given, "user.id": text}))
    drain(assembler(local, clock))
    assert len(payloads(local)) == len(hostile)
    assert letters(local) == []


def test_the_place_in_the_stream_moves_on_without_anything_to_publish(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    publish(local, *(a_span(trace, ROOT) for trace in range(1, 100)))
    drain(worker)
    clock.now += 3
    publish(local, a_span(100, ROOT))
    worker.step()
    assert (state(local)["cursor"], state(local)["spans_from"]) == (100, 101)
    assert published(local) == []


@pytest.mark.parametrize(("part", "noted"), [(1 << 20, 0), (1, 0), (1, 1), (1, 2)])
def test_who_lost_the_lease_while_it_published_begins_again(
    embedded: EmbeddedPlace, clock: Clock, monkeypatch: pytest.MonkeyPatch, part: int, noted: int
) -> None:
    bus = embedded.open()
    monkeypatch.setattr(assembly, "_PART_BYTES", part)
    worker = assembler(bus, clock)
    for trace in (1, 2, 3):
        publish(bus, *agent_trace(trace))
    left, publish_all = iter(range(noted)), worker._lease.publish

    def lose(*said: Any) -> list[int] | None:
        return None if next(left, None) is None else publish_all(*said)

    with monkeypatch.context() as patched:
        patched.setattr(worker._lease, "publish", lose)
        worker.step()
    assert worker._assembly is None
    rest(worker, clock)
    assert sorted(run for run, *_ in agents(bus)) == sorted(trace_id(trace) for trace in (1, 2, 3))
    worker.close()
