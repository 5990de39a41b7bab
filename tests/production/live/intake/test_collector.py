"""The collector: an agent never waits or fails, what it reported is stored, and failures hold the gate."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from support.abandoned import abandon, repeat_among_collections
from support.live.collector import put
from support.live_events import RULES, Reporter, outcome, reset, rules, runs, until

from pytest_tfgrpo.production.live.intake import collector as module
from pytest_tfgrpo.production.live.intake import event_buffer
from pytest_tfgrpo.production.live.intake.collector import Collector
from pytest_tfgrpo.production.live.intake.event_buffer import EventBuffer, LiveBatch
from pytest_tfgrpo.production.live.intake.run_clock import RunClock
from pytest_tfgrpo.production.live.records import LiveStatus


def test_live_rl_c01_what_is_put_is_in_the_store_after_a_flush(store, start):
    collector = start()
    put(collector, runs(*"abcde"))
    assert collector.flush()
    assert [rollout.status for rollout in store.rollouts()] == [LiveStatus.SUCCEEDED] * 5


def test_live_rl_c02_updates_follow_the_interval_and_the_selector_is_handed_over(store, start):
    learned = []
    collector = start(interval=4, limit=4, learned=lambda *selector: learned.append(selector))
    put(collector, runs(*"abcdefghij"))
    assert collector.flush()
    until(lambda: learned[-1:] == [(2, {"learned": 8})])
    put(collector, runs("k", "l"))
    assert collector.flush()
    assert learned[-1] == (3, {"learned": 12})
    assert [len(update.used) for update in store.updates()] == [4, 4, 4]


def test_live_rl_c03_failures_in_a_row_hold_and_the_agent_goes_on(store, start, broken):
    collector = start()
    one = Reporter("open")
    put(collector, [one.start()])
    assert collector.flush()
    broken.fails(3, "write")
    put(collector, runs("a"))
    until(lambda: collector.gate.state == "hold")
    assert (collector.gate.streak, collector.gate.reason) == (3, "failures")
    assert collector.gate.last_error == "StoreError: live store: database or disk is full"
    assert not collector.put(one.turn())
    assert collector.flush()
    assert [(r.run, r.reason) for r in store.rollouts()] == [("open", "held")]
    store.change_gate(reset, now=1.0)
    until(lambda: collector.put(Reporter("b").start()))
    assert collector.flush()
    assert [rollout.run for rollout in store.rollouts()] == ["open", "b"]


def test_two_failures_lose_nothing_and_a_whole_cycle_resets_the_streak(store, start, broken):
    collector = start()
    broken.fails(2, "write")
    put(collector, runs("a"))
    assert collector.flush()
    until(lambda: collector.gate.streak == 0)
    assert [state.streak for _, state in store.gate_journal()] == [1, 2, 0]
    assert [rollout.run for rollout in store.rollouts()] == ["a"]


def test_a_failing_update_holds_though_every_write_succeeds(store, start):
    collector = start(rules(update=lambda *_: 1 / 0), interval=2)
    put(collector, runs("a", "b"))
    until(lambda: collector.gate.state == "hold")
    assert collector.gate.last_error == "ZeroDivisionError: division by zero"
    assert store.counts()["succeeded"] == 2


def test_a_hold_survives_a_restart(store, start):
    store.change_gate(
        lambda _: RULES.failed(RULES.failed(RULES.failed(store.gate(), "x", 1.0), "x", 1.0), "x", 1.0),
        now=1.0,
    )
    assert not start().put(Reporter("a").start())


def test_a_full_queue_drops_events_and_fails_their_run(store, start, monkeypatch):
    blocked, entered = threading.Event(), threading.Event()
    write = store.write

    def slow(*args: Any, **kwargs: Any) -> Any:
        entered.set()
        blocked.wait(100)
        return write(*args, **kwargs)

    monkeypatch.setattr(store, "write", slow)
    collector = start(capacity=8)
    put(collector, Reporter("first").whole()[:1])
    assert entered.wait(100)
    one, other, third = Reporter("one"), Reporter("other"), Reporter("third")
    put(collector, [one.start(), one.choice(), *runs("whole")])
    taken = [
        collector.put(event) for event in [one.turn(), one.turn(), *other.whole(), outcome("whole", 0.5)]
    ]
    assert not any(taken)
    blocked.set()
    assert collector.flush()
    put(collector, [one.end(), *third.whole()])
    assert collector.flush()
    assert {rollout.run: rollout.reason for rollout in store.rollouts()} == {
        "first": "", "one": "events_lost", "whole": "", "other": "events_lost", "third": "",
    }  # fmt: skip
    assert store.due() == 2
    assert store.refusals() == {"after_end": 1, "events_lost": 3}


def test_a_full_queue_keeps_a_light_mark_of_each_run_once_until_that_is_read():
    buffer, one = EventBuffer(1), Reporter("one")
    start = one.start()
    start = start._replace(data={**start.data, "prompt": "long", "reply": "longer"})
    for _ in range(2):
        buffer.put(Reporter("other").start())
        assert [buffer.put(start), buffer.put(one.turn())] == [False, False]
        batch = LiveBatch()
        buffer.drain(batch)
        assert [event.run for event in batch.events] == ["other"]
        (lost,) = batch.lost
        assert (lost.run, lost.data.keys() & {"prompt", "reply"}) == ("one", set())
        assert lost.data["category"] == start.data["category"]


def test_a_batch_has_so_many_events_at_most_also_where_some_could_not_be_written_before(monkeypatch):
    monkeypatch.setattr(event_buffer, "BATCH", 3)
    buffer, batch, written = EventBuffer(10), LiveBatch(), list[str]()
    for n in range(7):
        buffer.put(Reporter(str(n)).start())
    while len(buffer):
        buffer.drain(batch)
        left = len(buffer)
        buffer.drain(batch)
        assert len(buffer) == left
        written.append(" ".join(event.run for event in batch.events))
        batch.clear()
    assert written == ["0 1 2", "3 4 5", "6"]


def test_runs_that_garbage_collection_ends_are_stored_whole(store, start, monkeypatch):
    monkeypatch.setattr(event_buffer, "LINGER_S", 0.0)
    collector = start(interval=999)
    names = iter(range(999))

    def begin() -> Callable[[], None]:
        one = Reporter(f"broken off {next(names)}")
        put(collector, [one.start(), one.turn()])
        return lambda: put(collector, [one.end()])

    def step() -> None:
        abandon(begin)
        put(collector, runs(f"whole {next(names)}"))
        assert collector.flush(30)

    repeat_among_collections(step, times=40, places=20)
    assert collector.flush(30)
    found = list(store.rollouts())
    assert [run.status for run in found] == [LiveStatus.SUCCEEDED] * len(found) == [LiveStatus.SUCCEEDED] * 80


def test_runs_that_garbage_collection_ends_while_the_queue_is_full_fail_once(store, start, monkeypatch):
    blocked, entered = threading.Event(), threading.Event()
    write = store.write

    def slow(*args: Any, **kwargs: Any) -> Any:
        entered.set()
        blocked.wait(100)
        return write(*args, **kwargs)

    monkeypatch.setattr(store, "write", slow)
    collector = start(capacity=1, interval=999)
    put(collector, Reporter("first").whole()[:1])
    assert entered.wait(10)
    put(collector, Reporter("last").whole()[:1])
    names = iter(range(999))

    def dropped() -> None:
        assert not collector.put(Reporter(f"run {next(names)}").start())

    def step() -> None:
        abandon(lambda: dropped)
        dropped()

    repeat_among_collections(step, times=150, places=15)
    blocked.set()
    assert collector.flush(30)
    reasons = [run.reason for run in store.rollouts() if run.run.startswith("run ")]
    assert reasons == ["events_lost"] * 300


def test_the_thread_that_writes_does_not_wait_for_itself(store, start):
    done = []

    def learned(*_: object) -> None:
        began = time.monotonic()
        done.append(collector.flush(30))
        collector.close(30)
        done.append(time.monotonic() - began < 20)

    collector = start(interval=1, learned=learned)
    put(collector, runs("a"))
    until(lambda: len(done) == 2)
    assert done == [False, True]


def test_a_run_that_goes_on_does_not_time_out(store, start):
    now = [1000.0]
    collector = start(clock=RunClock(5.0, lambda: now[0], lambda: now[0]))
    one = Reporter("a")
    for event in [one.start(), *[one.turn() for _ in range(12)], one.end()]:
        put(collector, [event])
        assert collector.flush()
        now[0] += 4
    assert next(store.rollouts()).status is LiveStatus.SUCCEEDED
    assert store.refusals() == {}


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_anew_ages_no_run(store, start, jump_s):
    now, steady = [100_000.0], [0.0]
    collector = start(clock=RunClock(3600.0, lambda: now[0], lambda: steady[0]))
    one = Reporter("a", at=now[0])
    put(collector, [one.start()])
    assert collector.flush()
    now[0] += jump_s
    one.at += jump_s
    put(collector, [one.turn(), *runs("b")])
    assert collector.flush()
    put(collector, [one.end()])
    assert collector.flush()
    assert [rollout.status for rollout in store.rollouts()] == [LiveStatus.SUCCEEDED] * 2
    assert [rollout.sequence for rollout in store.rollouts()] == [1, 2]


def test_closing_writes_what_is_queued_and_ends_the_thread(store, start):
    collector = start()
    put(collector, runs(*"abcdefgh"))
    collector.close()
    assert store.counts()["succeeded"] == 8
    assert not collector.put(Reporter("b").start())
    assert "tfgrpo-live" not in {thread.name for thread in threading.enumerate()}


def test_threads_share_a_collector(store, start):
    collector = start()

    def serve(name: str) -> None:
        for n in range(25):
            put(collector, runs(f"{name}-{n}"))

    threads = [threading.Thread(target=serve, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collector.flush(100)
    assert store.counts()["succeeded"] == 100
    assert store.refusals() == {}


def test_whatever_breaks_the_thread_goes_on(store, start, monkeypatch):
    collector = start()
    expire, broken = store.expire, [1]

    def breaks(*args: Any, **kwargs: Any) -> Any:
        if broken:
            broken.pop()
            raise sqlite3.InterfaceError("bad parameter")
        return expire(*args, **kwargs)

    monkeypatch.setattr(store, "expire", breaks)
    put(collector, runs("a"))
    assert collector.flush()
    put(collector, runs("b"))
    assert collector.flush()
    assert store.counts()["succeeded"] == 2
    assert [state.streak for _, state in store.gate_journal()][-2:] == [1, 0]


@pytest.mark.parametrize(
    ("failures", "held", "waits_s"),
    [
        (1, False, [2.0]),
        (2, False, [4.0]),
        (3, False, [8.0]),
        (4, False, [9.0]),
        (0, False, []),
        (1, True, []),
    ],
)
def test_after_failures_in_a_row_it_waits_longer_each_time(
    failures: int, held: bool, waits_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 2.0)
    monkeypatch.setattr(module, "LONGEST_RETRY_S", 9.0)
    waited: list[float] = []
    buffer = SimpleNamespace(pause=waited.append, rearm=list, held=held, closing=True)
    cycle = SimpleNamespace(failures=failures, more=False)
    one: Any = SimpleNamespace(_buffer=buffer, _cycle=cycle)
    Collector._wait(one)
    assert waited == waits_s


@pytest.mark.parametrize(
    ("closing", "left", "held", "failures", "ends"),
    [
        (False, False, True, 9, False),
        (True, False, False, 0, True),
        (True, True, False, 0, False),
        (True, True, False, 1, False),
        (True, True, False, 2, True),
        (True, True, True, 0, True),
    ],
)
@pytest.mark.parametrize("what", ["queue", "batch", "lost"])
def test_it_ends_once_all_is_written_or_cannot_be(
    what: str, closing: bool, left: bool, held: bool, failures: int, ends: bool
) -> None:
    buffer, batch, event = EventBuffer(8), LiveBatch(), Reporter("a").start()
    if left:
        {"queue": buffer.put, "batch": batch.events.append, "lost": batch.lost.append}[what](event)
    buffer.closing, buffer.held = closing, held
    one: Any = SimpleNamespace(_buffer=buffer, _batch=batch, _cycle=SimpleNamespace(failures=failures))
    assert bool(Collector._finished(one)) is ends


def test_a_child_process_begins_to_write_once_at_its_first_event():
    begun = []
    buffer = EventBuffer(1, begin=lambda: begun.append(1))
    one, other = Reporter("a").start(), Reporter("b").start()
    assert (buffer.put(one), len(begun)) == (True, 1)
    assert (buffer.put(other), buffer.put(other), len(begun)) == (False, False, 1)
    batch = LiveBatch()
    buffer.drain(batch)
    assert (batch.events, [event.run for event in batch.lost]) == ([one], ["b"])
    assert "prompt" not in batch.lost[0].data
    assert (buffer.put(other), buffer.dropped) == (True, 0)
