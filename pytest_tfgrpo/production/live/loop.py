"""Behind the application while live RL is on: the selector in use, a store, its collector and the guard."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.config import DecisionPoint, LiveConfig
from pytest_tfgrpo.production.live.intake.collector import Collector
from pytest_tfgrpo.production.live.intake.processor import SurroundingRun, mark_choice, open_live_processor
from pytest_tfgrpo.production.live.records import ArmChoice, LiveEvent, LiveRollout, LiveRules, LiveUpdate
from pytest_tfgrpo.production.live.report import status_of
from pytest_tfgrpo.production.live.selection.guard import Guard
from pytest_tfgrpo.production.live.selection.rewards import FailureReward, RewardInference, open_inference
from pytest_tfgrpo.production.live.selection.selector import is_control, open_selector
from pytest_tfgrpo.production.live.selection.update import Learning, compute
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

StoreOpener: TypeAlias = Callable[[Path | None, str], LiveStore]
"""Opens the store at a path, or in memory, for a namespace."""


class LiveLoop:
    """A `LiveBackend`: draws arms from memory, and hands events to the thread that writes and learns."""

    def __init__(self, config: LiveConfig, store: LiveStore, inference: RewardInference) -> None:
        """Start to collect; raises StoreError where the store cannot be read."""
        settings = config.settings
        self.config, self.store = config, store
        self._points = {name: point.stamps for name, point in config.points.items()}
        self._state = open_selector(0, None, self._points)
        self._collector = Collector(
            store,
            rules_of(config, inference),
            interval=settings.update_interval,
            limit=settings.max_rollouts_per_update,
            outcome_wait_s=settings.outcome_wait_s,
            learned=self._learned,
        )
        atexit.register(self._stop)

    @property
    def held(self) -> bool:
        """Whether the guard holds the gate."""
        return self._collector.gate.state == "hold"

    @property
    def selector(self) -> int:
        """Number of the selector in use."""
        return self._state.number

    def put(self, event: LiveEvent) -> bool:
        """Enqueue an event; never blocks or raises. False: it is lost."""
        return self._collector.put(event)

    def is_control(self, run: str) -> bool:
        """Return whether a run is one of the control group."""
        return is_control(self.config.settings.namespace, run)

    def choose(self, point: DecisionPoint, run: str, attempt: int, place: int, category: str) -> ArmChoice:
        """Return the choice of the selector."""
        namespace = self.config.settings.namespace
        return self._state.draw(namespace, run, attempt, point.name, place, category=category)

    def span_processor(
        self, current: Callable[[], SurroundingRun | None], swallow: Callable[[str, Exception], None]
    ) -> SpanProcessor:
        """Return a processor that reports agents; `current` is the run around the caller."""
        texts = self.config.settings.text != "none"
        return open_live_processor(self, current, texts=texts, swallow=swallow)

    mark = staticmethod(mark_choice)

    def status(self) -> dict[str, Json]:
        """Return gate, store and selector as they are now."""
        return status_of(self.config, self.store, self._collector.gate)

    def flush(self, timeout_s: float) -> bool:
        """Return whether all that was enqueued is durable, within a time."""
        return self._collector.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Flush, stop and close the store; returns whether all was durable in time."""
        done = self._collector.flush(timeout_s)
        self._stop(timeout_s)
        atexit.unregister(self._stop)
        return done

    def _stop(self, timeout_s: float = 5.0) -> None:
        self._collector.close(timeout_s)
        self.store.close()

    def _learned(self, number: int, document: Json) -> None:
        self._state = open_selector(number, document, self._points)


def open_loop(config: LiveConfig, open_store: StoreOpener = open_live_store) -> LiveLoop:
    """Return the loop of a configuration; raises SettingError for a strategy of reward inference that there
    is not, and StoreError."""
    inference = open_inference(config.settings.inference, config.path.parent)
    store = open_store(config.store, config.settings.namespace)
    try:
        return LiveLoop(config, store, inference)
    except BaseException:
        store.close()
        raise


def rules_of(config: LiveConfig, inference: RewardInference) -> LiveRules:
    """Return reward inference, guard and update, bound to the settings."""
    settings = config.settings
    worst = settings.failed_runs == "worst"
    inferred = FailureReward(inference) if worst else inference
    guard = Guard(
        max_failure_streak=settings.max_failure_streak, max_blocked=settings.max_blocked, count_failed=worst
    )
    learning = Learning(
        points={name: point.stamps for name, point in config.points.items()},
        strategy=inference.name,
        algorithm=settings.algorithm,
        limit=settings.max_rollouts_per_update,
    )

    def update(
        rollouts: Sequence[LiveRollout], selector: int, document: Json | None
    ) -> tuple[LiveUpdate, Json | None]:
        return compute(rollouts, selector, document, learning=learning, now=time.time())

    return LiveRules(
        infer=inferred.infer,
        ended=guard.ended,
        rewarded=guard.rewarded,
        failed=guard.failed,
        succeeded=guard.succeeded,
        update=update,
    )
