"""The role that calls the command: once for each alert, by one of the services on a bus.

The position is stored before a call, so that nothing is called twice; a call during which the service died
counts as one that failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.report.model_figures import model_figures
from pytest_tfgrpo.production.sinks.alerts.alert_state import LEASE, AlertState, state_of
from pytest_tfgrpo.production.sinks.alerts.command import TIMEOUT_S, CallCommand
from pytest_tfgrpo.production.sinks.alerts.loop_alerts import LoopAlert, alert_of, conditions
from pytest_tfgrpo.production.view.view import DEPLOYMENTS, TRAINING, LoopView
from pytest_tfgrpo.storage.lease import TTL_S, Lease

EVERY_S = 5.0
"""Between two looks."""
TOO_OLD_S = 86400.0
"""Age from which on an event is no alert any more, where no service called for a while."""
REST_S = 3600.0
"""Between two alerts about the same condition."""
_TTL_S = 3 * TIMEOUT_S
"""At least, so that nobody takes the lease during a call."""


class AlertCaller:
    """A role of the loop, for one thread."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        owner: str,
        *,
        call: CallCommand,
        scrub: Callable[[str], str],
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`owner` names this process alone; `scrub` takes secrets out of what a command said."""
        self._bus, self._view = bus, view
        self._call, self._scrub = call, scrub
        self._deployments = Deployments(bus)
        self._lease = Lease(bus, LEASE, owner, ttl_s=max(ttl_s, _TTL_S), clock=clock)
        self._clock, self._wall = clock, wall
        self._look_at = float("-inf")

    def step(self) -> int:
        """Look for an alert, and call; return 1 where it did. Raises BusError and StoreError."""
        if not self._lease.hold() or self._clock() < self._look_at:
            return 0
        self._view.catch_up(self._bus)
        before = state_of(self._lease.state)
        after, alert = self._next(_begun(self._bus, before))
        if alert is None:
            self._look_at = self._clock() + EVERY_S
            if after != before:
                self._keep(after)
            return 0
        if self._keep(replace(after, calling=alert.summary)):
            self._keep(_ended(after, self._scrub(self._called(alert))))
        return 1

    def close(self) -> None:
        """Let another service look at once."""
        self._lease.release()

    def _keep(self, state: AlertState) -> bool:
        return self._lease.publish([], to_wire(state)) is not None

    def _called(self, alert: LoopAlert) -> str:
        try:
            return self._call(alert.encode())
        except Exception as error:  # noqa: BLE001 - whatever a command does, the loop goes on
            return describe(error)

    def _next(self, state: AlertState) -> tuple[AlertState, LoopAlert | None]:
        """Return the next alert, and the state once it was called; without one, how far all was looked at."""
        for stream in (DEPLOYMENTS, TRAINING):
            position = state.positions.get(stream, 0)
            if self._bus.last(stream) == position:
                continue
            for event in self._bus.replay(stream, since_sequence=position + 1):
                state = _at(state, stream, event.sequence)
                alert = alert_of(event)
                if alert is not None and self._wall() - event.arrived < TOO_OLD_S:
                    return state, alert
        return self._conditions(state)

    def _conditions(self, state: AlertState) -> tuple[AlertState, LoopAlert | None]:
        now, figures = self._wall(), model_figures(self._view, self._deployments.serving())
        dead = (state.positions.get(DEAD, 0), self._view.position(DEAD))
        for found in conditions(self._view, figures, dead, now):
            since = state.raised.get(found.name)
            rested = since is None or not 0.0 <= now - since < REST_S
            if found.alert is not None and (since is None or (rested and not found.lasts)):
                state = replace(state, raised={**state.raised, found.name: now})
                if found.name == "dead_letters":
                    state = _at(state, DEAD, dead[1])
                return state, found.alert
            if found.alert is None and since is not None and rested:
                left = {name: at for name, at in state.raised.items() if name != found.name}
                state = replace(state, raised=left)
        return state, None


def _begun(bus: Bus, state: AlertState) -> AlertState:
    """Return the state to go on from: what was there before the first look is no alert."""
    if not state.positions:
        state = replace(state, positions={name: bus.last(name) for name in (DEPLOYMENTS, TRAINING, DEAD)})
    for stream, position in state.positions.items():
        if bus.last(stream) < position:  # another stream of that name
            state = _at(state, stream, 0)
    if state.calling:
        return _ended(state, f"the service ended during the call: {state.calling}")
    return state


def _ended(state: AlertState, failure: str) -> AlertState:
    """Return the state after a call."""
    if failure:
        return replace(state, calling="", failed=state.failed + 1, last_failure=failure[:500])
    return replace(state, calling="", ok=state.ok + 1)


def _at(state: AlertState, stream: str, position: int) -> AlertState:
    return replace(state, positions={**state.positions, stream: position})
