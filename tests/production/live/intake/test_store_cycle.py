"""Rounds of the collector on a store."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake.store_cycle import StoreCycle


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
