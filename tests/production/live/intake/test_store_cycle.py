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
