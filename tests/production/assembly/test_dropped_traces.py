"""Traces that opted out: what is there of them is overwritten soon, and they are known for an hour."""

from __future__ import annotations

import pytest
from support.buses import Clock
from support.job_states import NOON
from support.loop_spans import agent_trace, publish, trace_id

from pytest_tfgrpo.core.events import FEEDBACK
from pytest_tfgrpo.production.assembly import dropped_traces
from pytest_tfgrpo.production.assembly.dropped_traces import DroppedTraces
from pytest_tfgrpo.production.assembly.open_traces import DONE_S
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import BusEvent


def left(bus: Bus) -> int:
    return sum(1 for _ in bus.replay("RL_SPANS"))


def test_what_is_to_go_goes_5_seconds_after_the_first_of_it(local: Bus, clock: Clock) -> None:
    publish(local, *agent_trace(1))
    first, second = list(local.replay("RL_SPANS"))[:2]
    there, dropped = left(local), DroppedTraces(local, clock)
    dropped.flush_if_due(0.0)
    dropped.doom({first.id: first.sequence})
    assert dropped.first(99) == first.sequence
    clock.now += 4.9
    dropped.doom({second.id: second.sequence})
    dropped.flush_if_due(0.0)
    assert left(local) == there
    clock.now += 0.1
    dropped.flush_if_due(0.0)
    assert left(local) == there - 2
    assert dropped.first(99) == 99


def test_much_that_is_to_go_goes_at_once(local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped_traces, "_FLUSH_EVENTS", 2)
    publish(local, *agent_trace(1))
    first, second, *_ = local.replay("RL_SPANS")
    there, dropped = left(local), DroppedTraces(local, clock)
    dropped.doom({first.id: first.sequence})
    dropped.flush_if_due(0.0)
    assert left(local) == there
    dropped.doom({second.id: second.sequence})
    assert dropped.first(99) == first.sequence
    assert dropped.first(0) == 0
    dropped.flush_if_due(0.0)
    assert left(local) == there - 2


def test_a_published_trace_goes_5_seconds_later_too(local: Bus, clock: Clock) -> None:
    publish(local, *agent_trace(1))
    dropped = DroppedTraces(local, clock)
    dropped.doom_runs(trace_id(1), {"s": 1}, 1)
    clock.now += 5.0
    dropped.flush_if_due(0.0)
    assert left(local) == 0


def test_a_dropped_trace_is_forgotten_after_an_hour_also_by_whoever_comes_next(
    local: Bus, clock: Clock
) -> None:
    dropped = DroppedTraces(local, clock)
    dropped.add(trace_id(1), 100.0)
    dropped.add(trace_id(1), 900.0)
    dropped.flush(100.0 + DONE_S)
    assert trace_id(1) in DroppedTraces(local, clock)
    dropped.flush(100.1 + DONE_S)
    assert trace_id(1) not in dropped
    assert trace_id(1) not in DroppedTraces(local, clock)


def test_what_others_say_of_a_dropped_run_goes_with_it_and_what_they_say_of_others_stays(
    local: Bus, clock: Clock
) -> None:
    gone, more = trajectory_id(trace_id(1), "s"), trajectory_id(trace_id(2), "s")
    for n, said in enumerate((f"of {gone}", f"of {more}", "of another")):
        event_id = f"00000000-0000-4000-8000-{n:012}"
        event = BusEvent(id=event_id, subject=FEEDBACK, time=NOON, data=said.encode())
        local.publish([event])
    dropped = DroppedTraces(local, clock)
    dropped.doom_runs(trace_id(1), {"s": 1}, 1)
    dropped.doom_runs(trace_id(2), {"s": 1}, 1)
    dropped.flush(clock.now)
    assert [event.data for event in local.replay("RL_FEEDBACK") if event.data] == [b"of another"]


def test_the_spans_of_each_dropped_trace_go_from_where_they_begin(local: Bus, clock: Clock) -> None:
    firsts = []
    for n in (1, 2, 3):
        firsts.append(max((event.sequence for event in local.replay("RL_SPANS")), default=0) + 1)
        publish(local, *agent_trace(n))
    each, dropped = left(local) // 3, DroppedTraces(local, clock)
    dropped.doom_runs(trace_id(1), {"s": 1}, firsts[0])
    dropped.doom_runs(trace_id(3), {"s": 1}, firsts[2])
    dropped.flush(clock.now)
    assert [event.sequence for event in local.replay("RL_SPANS")] == list(range(firsts[1], firsts[1] + each))
