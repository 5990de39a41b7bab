"""A service that calls a command for alerts, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.alerts.alert_caller import EVERY_S, AlertCaller
from pytest_tfgrpo.production.sinks.alerts.alert_state import alert_state
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from support.buses import Clock


class Called:
    """A command that keeps what it got, and says how it ended."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []
        self.then: Callable[[], str] = str

    def __call__(self, data: bytes) -> str:
        self.alerts.append(json.loads(data))
        return self.then()

    @property
    def names(self) -> list[str]:
        return [one["alert"] for one in self.alerts]


class Alerting:
    """A bus whose alerts one service calls, one process after the other."""

    def __init__(self, bus: Bus, folder: Path, clock: Clock, wall: Callable[[], float]) -> None:
        self.bus, self.clock, self.wall, self.called = bus, clock, wall, Called()
        self.view = LoopView(folder / "view.db")
        self._started = 0
        self.start()
        self.look()  # what is there before is no alert

    def start(self) -> None:
        """Have another process, as after a kill."""
        self._started += 1
        self.caller = AlertCaller(
            self.bus,
            self.view,
            f"process-{self._started}",
            call=self.called,
            scrub=lambda text: text.replace("secret", "[redacted]"),
            clock=self.clock,
            wall=self.wall,
        )

    def look(self, later_s: float = EVERY_S) -> list[str]:
        """Call what is new, and return the names of all alerts so far."""
        self.clock.now += later_s
        while self.caller.step():
            pass
        return self.called.names

    @property
    def state(self) -> tuple[int, int, str]:
        found = alert_state(self.bus.table(STATE))
        return found.ok, found.failed, found.last_failure
