"""What is known of the slots of an endpoint."""

import time

import pytest
from support.completers import ScriptedCompleter

from pytest_tfgrpo.llm.limits.concurrency import BATCHED, Concurrency, with_batches
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, EndpointState, failover_warnings


def test_slots_are_idle_while_half_of_them_are_free_and_the_server_asks_for_no_pause() -> None:
    slots = AdaptiveSlots("fast", lambda: pytest.fail("nobody waits"), Concurrency())
    limit = slots.concurrency.limit
    for _ in range(limit // 2):
        slots.concurrency.begin()
    assert slots.is_idle
    assert slots.state() == EndpointState("fast", limit // 2, limit, 0.0)
    slots.concurrency.held_until = time.monotonic() + 1000.0
    assert [slots.is_idle] == [False]
    assert 900.0 < slots.state().held_s <= 1000.0
    slots.concurrency.held_until = 0.0
    assert slots.is_idle
    slots.concurrency.begin()
    assert [slots.is_idle] == [False]


def test_warnings_of_pools_come_in_order_and_batched_models_have_more_calls_in_flight() -> None:
    plain, pool, batched = (ScriptedCompleter(lambda _: "") for _ in range(3))
    pool.warnings = ["one", "two"]  # type: ignore[attr-defined]
    batched.warnings, batched.batched = ["three"], True  # type: ignore[attr-defined]
    assert failover_warnings([plain, pool, batched]) == ["one", "two", "three"]
    assert [with_batches(wanted, pool) for wanted in (1, BATCHED + 1)] == [1, BATCHED + 1]
    assert [with_batches(wanted, batched) for wanted in (1, BATCHED + 1)] == [BATCHED, BATCHED + 1]
