"""The collector: an agent never waits or fails, what it reported is stored, and failures hold the gate."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import closing

import pytest
from support.live.collector import put
from support.live_events import RULES, Reporter, counting, reset, rules, runs, until

from pytest_tfgrpo.production.live.intake.run_clock import RunClock
from pytest_tfgrpo.production.live.store.store import open_live_store


def test_another_process_s_selector_and_reset_are_seen_without_an_event(store, start):
    learned = []
    collector = start(interval=99, learned=lambda *selector: learned.append(selector))
    with closing(open_live_store(store.path, "shop")) as with_other:
        with_other.write(runs("a"), rules=RULES, now=1.0)
        with_other.update(counting, limit=8, outcome_wait_s=0.0, now=1.0, due=1)
        until(lambda: learned == [(1, {"learned": 1})])
        with_other.change_gate(
            lambda _: RULES.failed(RULES.failed(RULES.failed(collector.gate, "x", 1.0), "x", 1.0), "x", 1.0),
            now=1,
        )
        until(lambda: not collector.put(Reporter("b").start()))
        with_other.change_gate(reset, now=2.0)
        until(lambda: collector.put(Reporter("c").start()))
    assert store.refusals()["held"] >= 1


def test_failing_inference_holds_in_the_end(store, start):
    collector = start(rules(infer=lambda trace: 1 / 0))
    for name in "abc":
        put(collector, runs(name))
        assert collector.flush()
        time.sleep(0.02)  # cycles without work in between show nothing
    assert collector.gate.state == "hold"
    assert [rollout.reward for rollout in store.rollouts()] == [None] * 3


def test_a_hold_that_cannot_be_stored_is_kept_in_memory_until_it_can(store, start, broken):
    collector = start()
    broken.fails(40, "write", "change_gate")
    put(collector, runs("a"))
    until(lambda: collector.gate.state == "hold")
    assert store.gate().state == "pass"
    assert not collector.put(Reporter("b").start())
    until(lambda: store.gate().state == "hold")
    assert collector.gate == store.gate()
    assert store.gate().streak == 3


def test_runs_of_a_killed_process_time_out_by_whoever_sees_them(store, start):
    now = [1000.0]
    store.write([Reporter("orphan").start()], rules=RULES, now=now[0])
    start(clock=RunClock(3600.0, lambda: now[0], lambda: now[0]))
    now[0] += 3590
    with pytest.raises(AssertionError):
        until(lambda: store.counts()["failed"], timeout_s=0.1)
    now[0] += 21
    until(lambda: store.counts()["failed"] == 1)
    assert next(store.rollouts()).reason == "timeout"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_writes_its_own_runs_over_its_own_connection(store, start):
    collector = start(interval=99)
    put(collector, runs("parent"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            collector.put(Reporter("child").start())
            status = 0 if collector.flush() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert collector.flush()
    assert sorted(rollout.run for rollout in store.rollouts()) == ["child", "parent"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_multiprocessing_writes_what_is_queued_before_it_exits(store, start):
    collector = start(interval=99)
    child = multiprocessing.get_context("fork").Process(target=put, args=(collector, runs(*"abcdefgh")))
    child.start()
    child.join(100)
    assert child.exitcode == 0
    assert store.counts()["succeeded"] == 8
