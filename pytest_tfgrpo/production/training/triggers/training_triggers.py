"""Asks for training when a trigger is due: one of the services that share a bus does."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now, utc_time
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob, TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import TFGRPO, TrainingRequest
from pytest_tfgrpo.production.training.triggers.figures import TriggerFigures, figures_of
from pytest_tfgrpo.production.training.triggers.table import (
    LoopTrigger,
    TriggerLook,
    TriggerState,
    after_asking,
    due_trigger,
    settled_day,
)
from pytest_tfgrpo.production.view.view import REWARDS, TRAJECTORIES, LoopView, event_at
from pytest_tfgrpo.storage.lease import TTL_S, Lease

LEASE = "triggers"
EVERY_S = 30.0
"""Between two looks."""
UNKNOWN_MODEL = "unknown"


class TrainingTriggers:
    """A role of the loop: looks whether training is due, and asks for it."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        jobs: TrainingJobs,
        *,
        names: Collection[str],
        threshold: int,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`names` are those of the triggers that may ask."""
        self._bus, self._view, self._jobs = bus, view, jobs
        self._names, self._threshold = names, threshold
        self._clock, self._wall = clock, wall
        self._lease = Lease(bus, LEASE, jobs.owner, ttl_s=ttl_s, clock=clock)
        self._next = float("-inf")

    def step(self) -> int:
        """Look, once in a while; return 1 where it asked. Raises BusError."""
        if not self._lease.hold() or self._clock() < self._next:
            return 0
        self._next = self._clock() + EVERY_S
        now = datetime.fromtimestamp(self._wall(), UTC)
        state = _state(self._lease.state)
        jobs = self._jobs.listed()
        self._view.catch_up(self._bus)
        since = last_cut(jobs)
        figures = figures_of(self._view, now, since=since)
        seen = state.compared.get(figures.version, 0)
        if seen:
            figures = figures_of(self._view, now, since=since, compared=seen)
        state = settled_day(now, state, figures.new)
        look = TriggerLook(now, figures, state, self._threshold)
        busy = any(not job.ended for job in jobs)
        trigger = due_trigger(look, self._names, busy=busy, rested_since=_last_end(jobs))
        asked = trigger is not None and self._ask(look, trigger)
        after = after_asking(look, trigger) if asked and trigger is not None else state
        if asdict(after) != self._lease.state:
            self._lease.publish([], asdict(after))
        return int(asked)

    def close(self) -> None:
        """Let another service look at once."""
        self._lease.release()

    def _ask(self, look: TriggerLook, trigger: LoopTrigger) -> bool:
        request = new_request(
            trigger.reason,
            trigger.priority,
            base_model=newest_model(self._bus, self._view),
            watermark=look.figures,
            timestamp=utc_time(look.now.isoformat()) or "",
        )
        return not self._jobs.submit(request)


def new_request(
    reason: str,
    priority: str,
    *,
    base_model: str,
    watermark: TriggerFigures | None = None,
    sample_size: int | None = None,
    timestamp: str = "",
    job_id: str = "",
) -> TrainingRequest:
    """Return a request to learn from what is on the bus; its id follows from the watermark if it has one."""
    dataset: dict[str, Json] = {"source": "nats_stream", "stream_name": TRAJECTORIES}
    if sample_size is not None:
        dataset["sample_size"] = sample_size
    metadata: dict[str, Json] = {"requested_by": "system" if watermark else "user"}
    if watermark is not None:
        metadata["watermark"] = {TRAJECTORIES: watermark.watermark, REWARDS: watermark.rewards}
        job_id = derived_id("triggered", reason, str(watermark.watermark))
    return TrainingRequest(
        payload={
            "training_job_id": job_id,
            "timestamp": timestamp or utc_now(),
            "requester": "triggers" if watermark else "tfgrpo loop train",
            "trigger_reason": reason,
            "training_config": {"algorithm": TFGRPO, "base_model": base_model, "dataset": dataset},
            "priority": priority,
            "metadata": metadata,
        }
    )


def newest_model(bus: Bus, view: LoopView) -> str:
    """Return the model of the newest trajectory."""
    event = event_at(bus, TRAJECTORIES, view.rows("SELECT coalesce(max(seq), 0) FROM trajectories")[0][0])
    try:
        model = None if event is None else load_json(event.data)["metadata"]["model"]
    except (ValueError, KeyError, TypeError):
        model = None
    return model if isinstance(model, str) and 0 < len(model) <= 256 else UNKNOWN_MODEL


def last_cut(jobs: Sequence[TrainingJob]) -> int:
    """Return the sequence of the newest trajectory that a job has had, unless it failed or was cancelled."""
    used = [job.cut.get(TRAJECTORIES, 0) for job in jobs if job.state not in ("failed", "cancelled")]
    return max(used, default=0)


def _last_end(jobs: Sequence[TrainingJob]) -> datetime | None:
    ends = [datetime.fromisoformat(str(job.status["timestamp"])) for job in jobs if job.ended]
    return max(ends, default=None)


def _state(kept: Json) -> TriggerState:
    return TriggerState(**kept) if kept else TriggerState()
