"""Assemblers for tests, on a bus whose time a test moves, and what they made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_tfgrpo.production.assembly.assembler import Assembler
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import STATE
from support.buses import Clock, EmbeddedPlace
from support.loop_spans import payloads

IDLE_S = 60.0


@pytest.fixture
def clock(embedded: EmbeddedPlace) -> Clock:
    """Return the clock of the embedded bus."""
    embedded.clock = clock = Clock()
    return clock


@pytest.fixture
def local(embedded: EmbeddedPlace, clock: Clock) -> Bus:
    """Return an embedded bus whose time a test moves."""
    return embedded.open()


def assembler(bus: Bus, clock: Callable[[], float], owner: str = "one", **given: Any) -> Assembler:
    """Return an assembler; all of one test have one clock."""
    return Assembler(bus, owner, idle_s=IDLE_S, clock=clock, **given)


def drain(worker: Assembler) -> None:
    """Take steps until there is nothing to read."""
    while worker.step():
        pass


def rest(worker: Assembler, clock: Clock, seconds: float = IDLE_S) -> None:
    """Let time pass in which nothing comes."""
    drain(worker)
    clock.now += seconds
    worker.step()


def agents(bus: Bus) -> list[tuple[str, str, int]]:
    """Return trace, agent's span and number of turns of each trajectory."""
    return [
        (one["metadata"]["trace_id"], one["metadata"]["span_id"], len(one["turns"])) for one in payloads(bus)
    ]


def state(bus: Bus) -> dict[str, Any]:
    """Return what the assembler keeps beside its lease."""
    value, _ = bus.table(STATE).get("lease.assembler")
    assert value is not None
    kept: dict[str, Any] = json.loads(value)["state"]
    return kept
