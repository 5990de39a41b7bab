"""What the tests of production/live/test_session.py share with the slow ones."""

from typing import Any

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.config import DecisionPoint
from pytest_tfgrpo.production.live.records import ArmChoice, LiveEvent

CONFIG = """
[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.learned]
temperature = 0.7
library = "library.json"
"""


class Backend:
    """A backend that keeps what it is told."""

    held = False
    selector = 7

    def __init__(self) -> None:
        self.events: list[LiveEvent] = []
        self.broken = ""
        self.controls: set[str] = set()

    def put(self, event: LiveEvent) -> bool:
        if self.broken == "put":
            raise OSError("the disk is gone")
        self.events.append(event)
        return True

    def is_control(self, run: str) -> bool:
        if self.broken == "is_control":
            raise RuntimeError("no seed")
        return run in self.controls

    def choose(self, point: DecisionPoint, run: str, attempt: int, place: int, category: str) -> ArmChoice:
        if self.broken == "choose":
            raise RuntimeError("no selector")
        return ArmChoice(
            point=point.name,
            place=place,
            arm="learned",
            arms=point.stamps,
            probabilities={"bare": 0.25, "learned": 0.75},
            selector=self.selector,
        )

    def span_processor(self, current: Any, swallow: Any) -> Any:
        raise AssertionError("no test of the session opens one")

    def mark(self, *_: Any, **__: Any) -> None:
        """Note nothing."""

    def status(self) -> dict[str, Json]:
        if self.broken == "status":
            raise RuntimeError("no status")
        return {"gate": "pass"}

    def flush(self, timeout_s: float) -> bool:
        return True

    def close(self, timeout_s: float) -> bool:
        return True

    def of(self, key: str) -> list[LiveEvent]:
        return [event for event in self.events if event.run == key]
