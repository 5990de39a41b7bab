"""Rounds of the collector on a store."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from support.live_events import RULES, Reporter

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake.event_buffer import LiveBatch
from pytest_tfgrpo.production.live.intake.run_clock import RunClock
from pytest_tfgrpo.production.live.intake.store_cycle import StoreCycle
from pytest_tfgrpo.production.live.records import GateState
from pytest_tfgrpo.production.live.store.store_writing import TOUCHED_S


@pytest.mark.parametrize(("works", "told"), [(True, [7]), (False, [])])
def test_events_that_were_dropped_are_counted_until_a_store_was_told(works: bool, told: list[int]) -> None:
    counted = list[int]()

    def cancel_open(now: str, *, dropped: int) -> None:
        if not works:
            raise StoreError("the disk is full")
        counted.append(dropped)

    cycle: Any = StoreCycle.__new__(StoreCycle)
    cycle._store, cycle._clock = SimpleNamespace(cancel_open=cancel_open), SimpleNamespace(now=lambda: "now")
    cycle.gate, cycle.refresh = SimpleNamespace(unsaved=False), lambda: None
    assert (cycle.look_for_reset(7), counted) == (works, told)


@pytest.mark.parametrize(
    ("due", "made", "calls", "more"), [(7, 1, 0, False), (8, 1, 1, True), (9, None, 1, False)]
)
def test_another_update_may_be_due_after_one_was_made(
    due: int, made: int | None, calls: int, more: bool
) -> None:
    given = list[Any]()

    def update(*_: Any, **how: Any) -> int | None:
        given.append(how)
        return made

    cycle: Any = StoreCycle.__new__(StoreCycle)
    cycle._outcome_wait_s, cycle._interval, cycle._limit = 5.0, 8, 64
    cycle._rules = SimpleNamespace(update=None)
    cycle._store = SimpleNamespace(due=lambda **_: due, update=update)
    assert cycle._update(70.0) is more
    assert given == [{"limit": 64, "outcome_wait_s": 5.0, "now": 70.0, "due": 8}] * calls


class Shelf:
    """A store that may be away."""

    def __init__(self) -> None:
        self.state, self.away, self.told = GateState(), False, list[int]()

    def gate(self) -> GateState:
        return self.state

    def change_gate(self, change: Callable[[GateState], GateState], *, now: float) -> GateState:
        if self.away:
            raise StoreError("the disk is full")
        self.state = change(self.state)
        return self.state

    def write(self, events: Any, **_: Any) -> Any:
        if self.away:
            raise StoreError("the disk is full")
        return SimpleNamespace(gate=self.state, errors=())

    def expire(self, *_: Any, **__: Any) -> int:
        return 0

    def due(self, **_: Any) -> int:
        return 0

    def selector_number(self) -> int:
        return 0

    def cancel_open(self, now: float, *, dropped: int) -> None:
        self.told.append(dropped)


def test_failures_in_a_row_are_forgotten_by_a_round_that_did_something() -> None:
    shelf = Shelf()
    cycle = StoreCycle(
        shelf,
        RULES,
        RunClock(),
        interval=8,
        limit=64,
        outcome_wait_s=0.0,
        learned=None,  # type: ignore[arg-type]
    )
    batch = LiveBatch(events=[Reporter("a").start()])
    shelf.away = True
    for failures in (1, 2):
        cycle.run(batch)
        assert (cycle.failures, cycle.gate.state.streak, cycle.gate.unsaved) == (failures, failures, True)
    assert (len(batch), cycle.gate.state.last_error) == (1, "StoreError: the disk is full")
    assert cycle.look_for_reset(5) is False
    shelf.away = False
    cycle.run(LiveBatch())
    assert (cycle.failures, shelf.state.streak) == (0, 2), "it did nothing, which shows nothing"
    cycle.run(batch)
    assert (len(batch), shelf.state.streak, shelf.state.last_error) == (0, 0, "StoreError: the disk is full")


def test_a_hold_that_could_not_be_stored_is_before_the_store_is_told_of_dropped_events() -> None:
    shelf = Shelf()
    cycle = StoreCycle(
        shelf,
        RULES,
        RunClock(),
        interval=8,
        limit=64,
        outcome_wait_s=0.0,
        learned=None,  # type: ignore[arg-type]
    )
    shelf.away = True
    batch = LiveBatch(events=[Reporter("a").start()])
    for _ in range(3):
        cycle.run(batch)
    assert cycle.gate.held
    assert (cycle.look_for_reset(5), shelf.told) == (False, [])
    shelf.away = False
    assert (cycle.look_for_reset(5), shelf.told, shelf.state.state) == (True, [5], "hold")


@pytest.mark.parametrize(("jump_s", "skew"), [(60.0, 0.0), (60.5, 60.5), (-3600.0, 0.0)])
def test_a_wall_clock_that_is_set_forward_ages_no_run(jump_s: float, skew: float) -> None:
    steady, wall = [500.0], [1000.0]
    clock = RunClock(100.0, lambda: wall[0], lambda: steady[0])
    usual = 100.0 + TOUCHED_S
    assert clock.oldest(1000.0) == 1000.0 - usual
    steady[0] += 50
    assert clock.oldest(1050.0 + jump_s) == 1050.0 + jump_s - usual - skew
    steady[0] += 50
    assert clock.oldest(1100.0 + jump_s) == 1100.0 + jump_s - usual - skew
    assert clock.oldest(1100.0 + jump_s + 90) == 1100.0 + jump_s + 90 - usual - skew - 90
