"""The role that takes ramps from step to step, watches both arms, and rolls back what is worse."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate, FindNext
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.monitor_state import LEASE, MonitorState, decode_monitor_state
from pytest_tfgrpo.production.deployment.rules import VIOLATION, alarm_of, hold_is_over, waits_for
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving
from pytest_tfgrpo.production.deployment.sessions import SettledSessions, located
from pytest_tfgrpo.production.deployment.tallies import RampFigures, RampTally
from pytest_tfgrpo.production.deployment.violations import Violations
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.lease import TTL_S, Lease

EVERY_S = 300.0
"""Between two looks."""


class DeploymentController:
    """A role of the loop, of which one at a time works; for one thread."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        find_next: FindNext,
        owner: str,
        *,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        endpoint: str = "",
    ) -> None:
        """`owner` names this process alone; `endpoint` is for the events."""
        self._bus, self._view, self._find_next = bus, view, find_next
        self._deployments = Deployments(bus, endpoint)
        self._lease = Lease(bus, LEASE, owner, ttl_s=ttl_s, clock=clock)
        self._clock, self._wall = clock, wall
        self._look_at = float("-inf")
        self._watch: _RampWatch | None = None
        self._live: tuple[tuple[str, int], Violations] | None = None
        """Deployment and generation of the view, and the violations of the live version."""

    def step(self) -> int:
        """Look, once in a while; return 1 where something was decided. Raises BusError and StoreError."""
        if not self._lease.hold() or self._clock() < self._look_at:
            return 0
        before = self._deployments.serving()
        known = decode_monitor_state(self._lease.state)
        after, found = self._look(before, known, self._time())
        self._look_at = self._clock() + EVERY_S
        if found != known:
            self._lease.publish([], found.encode())
        return int(after != before)

    def close(self) -> None:
        """Let another service look at once."""
        self._lease.release()

    def _look(self, serving: Serving, known: MonitorState, now: str) -> tuple[Serving, MonitorState]:
        """Return what is served after a look, and what it found."""
        self._view.catch_up(self._bus)
        if self._live_is_unsafe(serving):
            evidence = RampFigures(violations=1).evidence()
            decision = DeployDecision(at=now, reason=VIOLATION, evidence=evidence)
            return self._deployments.withdraw(serving.live, decision), replace(known, waits="")
        ramp = serving.ramp
        if ramp is None:
            self._watch = None
            found = self._find_next(serving)
            state = MonitorState(skipped=found.skipped)
            if found.candidate is None or found.live is None:
                return serving, state
            decision = DeployDecision(at=now, reason=_start_reason(found.candidate))
            return self._deployments.start(found.candidate, found.live, decision), state
        try:
            figures = self._figures(serving, ramp, now)
        except BaseException:
            self._watch = None  # some sessions may be read and not counted: count them all again
            raise
        after, waits = self._decide(serving, ramp, figures, now)
        return after, replace(known, waits=waits)

    def _live_is_unsafe(self, serving: Serving) -> bool:
        """Return whether a violation of the live version is confirmed, and one was before it."""
        deployed, generation = serving.deployed, self._view.generation
        if deployed is None or not serving.previous:
            return False
        if self._live is None or self._live[0] != (deployed.deployment, generation):
            whose = (deployed.deployment, generation)
            self._live = (whose, Violations(located(self._view, deployed)))
        return self._live[1].count(self._view) > 0

    def _figures(self, serving: Serving, ramp: Ramp, now: str) -> RampFigures:
        watch, ramp = self._watch, located(self._view, ramp)
        if watch is None or (watch.deployment, watch.generation) != (ramp.deployment, self._view.generation):
            watch = self._watch = _RampWatch(ramp, serving.live, self._view.generation)
        for session in watch.sessions.read(self._view, ramp, now):
            watch.tally.add(session)
        return watch.tally.figures(ramp.since_position, watch.violations.count(self._view))

    def _decide(self, serving: Serving, ramp: Ramp, found: RampFigures, now: str) -> tuple[Serving, str]:
        def decision(reason: str) -> DeployDecision:
            return DeployDecision(at=now, reason=reason, evidence=found.evidence())

        version, deployments = ramp.version, self._deployments
        alarm = alarm_of(found)
        if alarm is not None and alarm.action == "roll_back":
            return deployments.roll_back(version, decision(alarm.reason), ramp), ""
        if serving.states[version] == "held":
            if ramp.held_by or not hold_is_over(found):
                return serving, f"the end of its hold: {ramp.held_for}"
            return deployments.advance(version, decision("what it was held for has ended"), ramp), ""
        if alarm is not None:
            return deployments.hold(
                version, decision(alarm.reason), ramp
            ), f"the end of its hold: {alarm.reason}"
        waits = waits_for(ramp, found, now)
        if waits:
            return serving, waits
        return deployments.advance(
            version, decision("its time is over, with enough sessions and no alarm"), ramp
        ), ""

    def _time(self) -> str:
        return utc_time(datetime.fromtimestamp(self._wall(), UTC).isoformat()) or ""


class _RampWatch:
    """What was seen of one ramp."""

    def __init__(self, ramp: Ramp, live: str, generation: int) -> None:
        self.deployment, self.generation = ramp.deployment, generation
        self.sessions, self.tally = SettledSessions(ramp, live), RampTally()
        self.violations = Violations(ramp)


def _start_reason(candidate: DeployCandidate) -> str:
    return f"approved by {candidate.approved_by}" if candidate.approved_by else "it passed its validation"
