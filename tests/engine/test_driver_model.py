"""The model of `benchmarks/simulation.py`: a driver that serves calls in slots, and a disk behind it."""

import math
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import benchmark


@pytest.fixture(scope="module")
def model() -> ModuleType:
    return benchmark("driver_model")


@pytest.mark.parametrize(("slots", "rounds"), [(1, 12), (3, 4), (5, 3), (12, 1), (64, 1)])
def test_a_driver_that_costs_nothing_leaves_rounds_of_calls(
    model: ModuleType, slots: int, rounds: int
) -> None:
    assert model.sweep(model.Costs(), slots, 12, (2.0, 2.0)) == (pytest.approx(2.0 * rounds), 0.0, 0.0)


def test_one_slot_adds_up(model: ModuleType) -> None:
    costs = model.Costs(turn_s=0.25, after_s=0.5, wake_s=1.0)
    # each call waits for the start before it and the check of the last one, and wakes the driver
    found = model.sweep(costs, 1, 10, (2.0, 2.0))
    assert found.wall_s == pytest.approx(0.25 + 10 * (2.0 + 1.0) + 9 * 0.25 + 0.5)
    assert found.driver_s == pytest.approx(10 * (0.25 + 0.5 + 1.0))


@pytest.mark.parametrize("busy_share", [0.0, 0.2])
def test_a_driver_without_rest_works_at_one_rollout_per_cost(model: ModuleType, busy_share: float) -> None:
    costs = model.Costs(turn_s=0.003, after_s=0.002, wake_s=9.0, busy_share=busy_share)
    found = model.sweep(costs, 1_000, 20_000, (0.5, 1.0))
    rate = 20_000 / found.wall_s
    assert rate == pytest.approx(model.limits(costs, 1_000, (0.5, 1.0))["driver"], rel=0.01)
    assert found.driver_s / found.wall_s == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.8])
def test_calls_wait_as_long_as_in_a_queue_with_one_server(model: ModuleType, load: float) -> None:
    """The mean wait of M/D/1 (Pollaczek and Khinchine): many slots send calls at random times."""
    cost, slots, early, late = 0.001, 1_000, 20_000, 60_000
    costs, latency = model.Costs(turn_s=cost / 2, after_s=cost / 2), slots * cost / load
    warming, whole = (model.sweep(costs, slots, n, (0.0, 2 * latency)).queued_s * n for n in (early, late))
    settled = (whole - warming) / (late - early)  # all calls start at once
    assert settled == pytest.approx(cost * load / (2 * (1 - load)), rel=0.05)


def test_a_driver_that_looks_at_ticks_wakes_less_often(model: ModuleType) -> None:
    costs = model.Costs(turn_s=1e-6, wake_s=1e-5, tick_s=0.5)
    assert model.sweep(costs, 1, 1, (2.2, 2.2)).wall_s == pytest.approx(2.5, abs=1e-4)
    often, seldom = (model.sweep(one, 100, 2_000, (1.0, 2.0)) for one in (replace(costs, tick_s=0.0), costs))
    assert often.driver_s == pytest.approx(2_000 * 1.1e-5, rel=0.01)
    wakes = (seldom.driver_s - 2_000 * 1e-6) / 1e-5
    assert 1 < wakes <= seldom.wall_s / 0.5


def test_a_slow_disk_decides(model: ModuleType) -> None:
    costs = model.Costs(turn_s=0.001, journal_b=1_000, disk_bps=10_000)
    assert model.sweep(costs, 100, 500, (0.1, 0.1)).wall_s == pytest.approx(50.0, rel=0.01)
    run = model.RunCosts(sweep=costs)
    assert model.forecast(run, 100, 1_500, (0.1, 0.1)).bottleneck == "disk"


@settings(deadline=None, max_examples=60)
@given(
    slots=st.integers(1, 40),
    rollouts=st.integers(1, 200),
    latency=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    turn=st.floats(0, 0.1),
    after=st.floats(0, 0.1),
    wake=st.floats(0, 0.1),
    share=st.floats(0, 0.5),
)
def test_no_sweep_is_faster_than_its_calls_or_its_driver(
    model: ModuleType,
    slots: int,
    rollouts: int,
    latency: tuple[float, float],
    turn: float,
    after: float,
    wake: float,
    share: float,
) -> None:
    low, high = latency[0], sum(latency)
    costs = model.Costs(turn_s=turn, after_s=after, wake_s=wake, busy_share=share)
    found = model.sweep(costs, slots, rollouts, (low, high))
    assert found.wall_s >= math.ceil(rollouts / slots) * low - 1e-9
    assert found.wall_s * (1 + 1e-9) >= rollouts * (turn + after) / (1 - share)
    assert found.wall_s <= rollouts * (high + (turn + after + wake) / (1 - share)) + 1e-9
    assert 0 <= found.driver_s <= found.wall_s
    alone = model.sweep(replace(costs, turn_s=0.0, after_s=0.0, wake_s=0.0), slots, rollouts, (low, high))
    assert alone.wall_s <= found.wall_s + 1e-9


def test_a_forecast_names_what_takes_most(model: ModuleType) -> None:
    run = model.RunCosts(
        sweep=model.Costs(turn_s=0.001, journal_b=1_000),
        start_s=(1.0, 0.0),
        end_s=(2.0, 0.0001),
        resume_s=0.0002,
        memory_b=(50e6, 1_000),
        slot_b=2_000,
    )
    waits = model.forecast(run, 100, 30_000, (1.0, 1.0))
    assert waits.bottleneck == "agents"
    assert waits.parts_s["agents"] == pytest.approx(300.0)
    assert waits.wall_s == pytest.approx(300.0 + 3 * 0.1 + 1.0 + 2.0 + 3.0, rel=0.01)
    assert (waits.journal_b, waits.memory_b, waits.resume_s) == (30e6, 50e6 + 30e6 + 200e3, 1.0 + 6.0)
    assert model.forecast(run, 5_000, 30_000, (1.0, 1.0)).bottleneck == "driver"
    assert model.forecast(run, 100, 30_000, (1.0, 1.0), memory_b=60e6).bottleneck == "memory"
    assert model.forecast(replace(run, end_s=(0.0, 0.1)), 100, 30_000, (1.0, 1.0)).bottleneck == "report"
