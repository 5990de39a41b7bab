"""The guard's memory of one process, while the store cannot be written and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake.gate_memory import GateMemory
from pytest_tfgrpo.production.live.records import GateState
from pytest_tfgrpo.production.live.store.store import LiveStore


class Shelf:
    """A store that may be away."""

    def __init__(self) -> None:
        self.state, self.away = GateState(), False

    def gate(self) -> GateState:
        return self.state

    def change_gate(self, change: Callable[[GateState], GateState], *, now: float) -> GateState:
        if self.away:
            raise StoreError("the disk is full")
        self.state = change(self.state)
        return self.state


def failed(state: GateState) -> GateState:
    return replace(state, streak=state.streak + 1, last_error="no")


def test_failures_that_could_not_be_stored_are_stored_once_they_can_beside_what_others_stored() -> None:
    shelf = Shelf()
    memory = GateMemory(cast("LiveStore", shelf))
    shelf.away = True
    for streak in (1, 2):
        memory.change(failed, 1.0)
        assert (memory.state.streak, memory.unsaved, shelf.state.streak) == (streak, True, 0)
    shelf.state, shelf.away = GateState(blocked=(True,)), False
    memory.take(shelf.state)
    assert (memory.state.streak, memory.state.blocked, memory.held) == (2, (True,), False)
    memory.change(failed, 1.0)
    assert (shelf.state.streak, shelf.state.blocked, memory.unsaved) == (3, (True,), False)


def test_a_hold_of_another_process_holds_here_whatever_could_not_be_stored() -> None:
    shelf = Shelf()
    memory = GateMemory(cast("LiveStore", shelf))
    shelf.away = True
    memory.change(failed, 1.0)
    memory.take(GateState(state="hold", reason="max_blocked"))
    assert (memory.held, memory.state.reason, memory.state.streak) == (True, "max_blocked", 0)
