"""The guard: when live RL stops by itself, and starts again by a person's decision (decision 23)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.live.records import GateState, LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection.control import (
    MORE_FAILURES,
    NEEDED,
    NEEDED_OF_FAILURES,
    bet,
    wealth,
)
from pytest_tfgrpo.storage.states import StateTable

WINDOW = 32
"""Runs that the limit of blocked ones looks at."""

GuardTrigger: TypeAlias = Literal["failures", "max_blocked", "worse_than_control", "more_failures", "reset"]

GATE: StateTable[Literal["pass", "hold"], GuardTrigger] = StateTable(
    {
        ("pass", "failures"): ("hold", ""),
        ("pass", "max_blocked"): ("hold", ""),
        ("pass", "worse_than_control"): ("hold", ""),
        ("pass", "more_failures"): ("hold", ""),
        ("pass", "reset"): ("pass", ""),
        ("hold", "reset"): ("pass", ""),
    }
)
"""It owes no events: each process that shares a store reads the state there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """The limits, and what each event makes of the gate's memory."""

    max_failure_streak: int = 3
    """Failures in a row that hold the gate."""
    max_blocked: int = 3
    """Of the last 32 runs, those blocked by safety that hold the gate."""
    count_failed: bool = True
    """Hold the gate too where runs fail more often than those of the control."""

    def failed(self, state: GateState, error: str, now: float) -> GateState:
        """Return the state after a write or an update failed."""
        after = replace(state, streak=state.streak + 1, last_error=error)
        return _after(after, "failures", now) if after.streak >= self.max_failure_streak else after

    def succeeded(self, state: GateState) -> GateState:
        """Return the state after a whole cycle, a due update included."""
        return replace(state, streak=0) if state.state == "pass" and state.streak else state

    def ended(self, state: GateState, rollout: LiveRollout) -> GateState:
        """Return the state after a run; held, it learns nothing, and a cancelled run says nothing."""
        if state.state == "hold" or not _says_something(rollout):
            return state
        blocked = rollout.trace is not None and rollout.trace.blocked
        after = replace(state, blocked=(*state.blocked, blocked)[-WINDOW:])
        if sum(after.blocked) >= self.max_blocked:
            return _after(after, "max_blocked", _end(rollout))
        return self.rewarded(self._failed_or_not(after, rollout), rollout)

    def _failed_or_not(self, state: GateState, rollout: LiveRollout) -> GateState:
        if not self.count_failed or not rollout.choices:
            return state
        ended_well = float(rollout.status is LiveStatus.SUCCEEDED)
        failures = bet(state.failures, ended_well, control=rollout.control, margin=MORE_FAILURES)
        after = replace(state, failures=failures)
        more = wealth(failures) >= NEEDED_OF_FAILURES
        return _after(after, "more_failures", _end(rollout)) if more else after

    def rewarded(self, state: GateState, rollout: LiveRollout) -> GateState:
        """Return the state once the reward of an ended run is known, at its end or later."""
        if state.state == "hold" or not rollout.choices or rollout.reward is None:
            return state
        after = replace(state, control=bet(state.control, rollout.reward.q, control=rollout.control))
        worse = wealth(after.control) >= NEEDED
        return _after(after, "worse_than_control", _end(rollout)) if worse else after


def _says_something(rollout: LiveRollout) -> bool:
    return rollout.status in (LiveStatus.SUCCEEDED, LiveStatus.FAILED)


def _end(rollout: LiveRollout) -> float:
    return rollout.started_at if rollout.ended_at is None else rollout.ended_at


def reset(state: GateState, actor: str, reason: str, now: float) -> GateState:
    """Return the state after a person let live RL go on: it passes, and its memory is empty.

    Raises ValueError without an actor or a reason.
    """
    if not actor.strip() or not reason.strip():
        raise ValueError("a reset needs an actor and a reason; say who resets the gate, and why")
    passing = GateState(state=state.state, last_error=state.last_error)
    return replace(_after(passing, "reset", now), reason=reason, by=actor)


def _after(state: GateState, trigger: GuardTrigger, now: float) -> GateState:
    found = GATE.after(state.state, trigger)
    return state if found is None else replace(state, state=found, reason=trigger, since=now, by="")
