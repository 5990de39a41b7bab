"""A loop whose ramps a test watches, on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate, NextRamp
from pytest_tfgrpo.production.deployment.controller import DeploymentController
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.monitor_state import monitor_state
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.view.view import LoopView
from support.deployments import DrawnSession, minute, publish_sessions
from support.loop_events import payloads

V1 = DeployCandidate(version="v1")
V2 = DeployCandidate(
    version="v2", benchmark_passed=True, safety_checks_passed=True, improvement=0.08, approved_by="ada"
)


class RampLoop:
    """A bus, a view, and a controller whose clock the test moves."""

    def __init__(self, bus: Bus, folder: Path, owner: str = "one", **more: float | str) -> None:
        self.bus, self.minute, self.back = bus, 0.0, 0.0
        """`back`: minutes by which the wall clock was set back."""
        self.waiting: list[DeployCandidate] = [V2]
        self.skipped: dict[str, str] = {}
        self.view = LoopView(folder / f"{owner}.db")
        start = datetime.fromisoformat(minute(0)).timestamp()
        self.controller = DeploymentController(
            bus,
            self.view,
            self._next,
            owner,
            clock=lambda: self.minute * 60.0,
            wall=lambda: start + (self.minute - self.back) * 60.0,
            **more,  # type: ignore[arg-type]
        )
        self.deployments = Deployments(bus)
        self._drawn = 0

    def _next(self, serving: Serving) -> NextRamp:
        found = [one for one in self.waiting if one.version not in serving.states]
        return NextRamp(found[0] if found else None, V1, self.skipped)

    def look(self, at: float) -> Serving:
        self.minute = at
        self.controller.step()
        return self.deployments.serving()

    def send(
        self,
        count: int,
        version: str,
        at: float,
        bad: Callable[[int], bool] = lambda n: False,
        **more: float | bool,
    ) -> None:
        """Publish sessions that ended at a minute; of those that `bad` names `more` is true."""
        drawn = []
        for n in range(count):
            self._drawn += 1
            one = DrawnSession(f"s{self._drawn}", version, at, reward=0.7 + 0.2 * (n % 2))
            drawn.append(one._replace(**more) if bad(n) else one)  # type: ignore[arg-type]
        publish_sessions(self.bus, drawn)

    @property
    def waits(self) -> str:
        return monitor_state(self.bus).waits

    @property
    def states(self) -> list[str]:
        return [one["metadata"]["state"] for one in payloads(self.bus, "RL_DEPLOYMENTS")]
