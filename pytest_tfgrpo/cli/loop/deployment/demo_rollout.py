"""How ``tfgrpo loop demo`` ends: three versions on their way to users, on a simulated clock.

The users are drawn; assignment, rewards, monitor and decisions are those of a service.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pytest_tfgrpo.core.events import TRAJECTORY, derived_id
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.assignment import SessionVersions
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate, NextRamp
from pytest_tfgrpo.production.deployment.controller import DeploymentController
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import FIRST, Serving
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.view.view import DEPLOYMENTS, LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

AGO = timedelta(days=10)
"""How long ago the simulated clock begins, so that nothing of it lies in the future."""
LOOK_S = 600.0
"""Between two looks; a service looks twice as often."""
SESSIONS = 100
"""New sessions between two looks, of a user each."""
PATIENCE_S = 86_400.0
"""Simulated seconds within which a ramp of the demo ends."""
ERRORS, OUTAGE_ERRORS = 0.01, 0.7
OUTAGE_S = (70 * 60.0, 130 * 60.0)
"""When the outage begins and ends, after the last ramp began."""


class DemoVersion(NamedTuple):
    """A version, and how good its answers are to users."""

    candidate: DeployCandidate
    completion: float
    """Mean share of a task that it completes."""
    stars: float
    """Mean rating."""


def _passed(version: str, improvement: float) -> DeployCandidate:
    return DeployCandidate(
        version=version,
        benchmark_passed=True,
        safety_checks_passed=True,
        improvement=improvement,
        improvement_low=0.01,
        approved_by="ada",
    )


def demo_versions(first: int) -> dict[str, DemoVersion]:
    """Return v1, and three from number `first` on: a better one, a bad one, and one like the better one."""
    better, worse, alike = (f"v{first + n}" for n in range(3))
    bad = DeployCandidate(version=worse, performance_regression=True, safety_checks_passed=True)
    return {
        FIRST: DemoVersion(DeployCandidate(version=FIRST), 0.5, 3.5),
        better: DemoVersion(_passed(better, 0.08), 0.6, 3.8),
        worse: DemoVersion(bad, 0.1, 2.0),
        alike: DemoVersion(_passed(alike, 0.06), 0.6, 3.8),
    }


def rollout_lines(bus: Bus, view: LoopView, first: int = 2) -> Iterator[str]:
    """Yield each decision about three versions with its evidence; the first of them has the number `first`.

    Raises StoreError and BusError.
    """
    demo = DemoRollout(bus, view, first)
    _, better, worse, alike = demo.versions
    yield "rollout    of three made-up versions to made-up users, on a simulated clock:"
    yield "           a look every 10 minutes, 600 sessions an hour"
    yield f"           {better} passed its validation, .08 better than v1; ada approves it"
    yield from demo.ramp(better, DeployDecision(at=demo.now, by="ada", reason="approved"))
    yield f"           {worse} failed its validation; grace uses --emergency-override"
    override = DeployDecision(at=demo.now, by="grace", reason="override: a customer waits for it")
    yield from demo.ramp(worse, override, override=True)
    yield f"           {alike} is as good as {better}; for an hour the provider of both fails"
    yield from demo.ramp(alike, DeployDecision(at=demo.now, by="ada", reason="approved"), outage=OUTAGE_S)
    demo.close()
    states = ", ".join(f"{name} {state.replace('_', ' ')}" for name, state in demo.serving().states.items())
    yield f"           in the end: {states}"


class DemoRollout:
    """A controller and an evaluator of their own, and users that are drawn."""

    def __init__(self, bus: Bus, view: LoopView, first: int) -> None:
        self._bus, self._view = bus, view
        self.versions = demo_versions(first)
        self._start = (datetime.now(UTC) - AGO).replace(hour=9, minute=0, second=0, microsecond=0)
        self._seconds = 0.0
        self._draw = random.Random("rollout")
        self._met = SessionVersions()
        self._drawn = 0
        self._deployments = Deployments(bus)
        self._told = bus.last(DEPLOYMENTS)
        self._evaluator = Evaluator(bus, view, "demo", settle_s=0.0)
        self._controller = DeploymentController(
            bus,
            view,
            lambda _: NextRamp(),
            "demo",
            clock=lambda: self._seconds,
            wall=lambda: self._start.timestamp() + self._seconds,
        )

    @property
    def now(self) -> str:
        """The simulated time."""
        return self._time(0.0)

    def serving(self) -> Serving:
        """Return what is served."""
        return self._deployments.serving()

    def close(self) -> None:
        """Let go of the roles."""
        self._controller.close()
        self._evaluator.close()

    def ramp(
        self,
        version: str,
        decision: DeployDecision,
        *,
        override: bool = False,
        outage: tuple[float, float] = (0.0, 0.0),
    ) -> Iterator[str]:
        """Yield the decisions about a version until its ramp ends."""
        began, live = self._seconds, self.versions[self.serving().live].candidate
        self._deployments.start(self.versions[version].candidate, live, decision, override=override)
        yield from self._decisions()
        while self.serving().ramp is not None and self._seconds < began + PATIENCE_S:
            failing = outage[0] <= self._seconds - began < outage[1]
            self._publish(OUTAGE_ERRORS if failing else ERRORS)
            self._seconds += LOOK_S
            while self._evaluator.step():
                pass
            self._controller.step()
            yield from self._decisions()

    def _decisions(self) -> Iterator[str]:
        for event in self._bus.replay(DEPLOYMENTS, since_sequence=self._told + 1):
            self._told = event.sequence
            data = load_json(event.data)
            if data["metadata"]["state"] != "retired":
                yield from _decision_lines(data, self._seconds)

    def _publish(self, errors: float) -> None:
        """Let sessions meet their versions, and publish what comes of it."""
        serving, events = self.serving(), []
        for n in range(SESSIONS):
            self._drawn += 1
            session = f"demo-{self._drawn}"
            version = self._met.version(serving, session)
            at = self._time(LOOK_S * (n + 0.5) / SESSIONS)
            events.append(_trajectory(session, version, at, self._outcome(self.versions[version], errors)))
        self._bus.publish(events)

    def _outcome(self, version: DemoVersion, errors: float) -> dict[str, Json]:
        if self._draw.random() < errors:
            return {"task_status": "failed"}
        completion = min(1.0, max(0.0, self._draw.gauss(version.completion, 0.25)))
        stars = min(5, max(1, round(self._draw.gauss(version.stars, 1.0))))
        return {
            "task_status": "partial_completion",
            "completion": completion,
            "user_feedback": {"type": "rating", "rating": stars},
        }

    def _time(self, later: float) -> str:
        return utc_time((self._start + timedelta(seconds=self._seconds + later)).isoformat()) or ""


def _trajectory(session: str, version: str, at: str, outcome: dict[str, Json]) -> BusEvent:
    key = derived_id("rollout", session, at)
    payload = {
        "trajectory_id": key,
        "session_id": session,
        "agent_id": "demo",
        "start_timestamp": at,
        "end_timestamp": at,
        "turns": [],
        "task_context": {"domain": "general"},
        "outcome": outcome,
        "metadata": {"policy_version": version, "user_ref": f"u-{session}"},
    }
    return BusEvent(id=key, subject=TRAJECTORY, time=at, data=json.dumps(payload).encode())


def _decision_lines(data: Json, seconds: float) -> Iterator[str]:
    metadata, share = data["metadata"], data["deployment_config"]["traffic_percentage"]
    hours, minutes = divmod(round(seconds / 60), 60)
    name = f"{data['model_info']['model_id']} {metadata['state'].replace('_', ' ')}"
    yield from labelled(
        f"{hours:2} h {minutes:02}", f"{name}, {share:g} % of new sessions: {line(metadata['reason'])}"
    )
    found = metadata["evidence"]
    if found:
        counts, reward, rates = found["sessions"], found["reward"], found["error_rate"]
        yield f"           {counts['canary']:g} sessions against {counts['control']:g}"
        yield (
            f"           reward {reward['difference']:+.3f} ({reward['low']:+.2f} to {reward['high']:+.2f}), "
            f"errors {rates['canary']:.3f} and {rates['control']:.3f}"
        )
        if metadata["state"] in ("canary", "live"):
            drop = f"{reward['missed_drop']:.2f}"
            seen = f"a drop of {drop} would still" if float(drop) else "no drop would"
            yield f"           {seen} have been missed"
