"""The metrics of a loop for tests: what a scrape answers, and the events that it counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.events import MODEL_DEPLOYED, TRAINING_REQUEST, TRAINING_STATUS, derived_id
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.prometheus.exposition import metrics_page
from pytest_tfgrpo.production.sinks.prometheus.metrics import EVERY_S, LoopMetrics
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent
from support.buses import Clock
from support.loop_events import trajectory

NOON = "2026-01-01T12:00:00.000Z"


class CountedLoop:
    """A bus, and the metrics of one service on it; looks follow each other as the clock of both goes."""

    def __init__(self, bus: Bus, folder: Path, clock: Clock, name: str = "one") -> None:
        self.bus, self.clock, self.view = bus, clock, LoopView(folder / f"{name}.db")
        self.metrics = LoopMetrics(bus, self.view, name, clock=clock)

    def scrape(self) -> str:
        self.clock.now += EVERY_S
        return scraped(self.metrics)

    def end(self) -> None:
        self.metrics.close()
        self.view.close()


def scraped(metrics: LoopMetrics) -> str:
    """Count what is new, and return what a scrape answers."""
    metrics.step()
    answer = metrics_page(metrics.samples)()
    assert answer.status == 200, answer
    return answer.body.decode()


def values(text: str, start: str = "") -> dict[str, float]:
    """Return the values of an exposition by name and labels, of the lines that start so."""
    lines = [line for line in text.split("\n") if line.startswith(start) and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line)}


def run_of(agent: str, name: str, **more: Any) -> BusEvent:
    """Return a trajectory of an agent that has no profile."""
    event = trajectory(name, agent=agent, **more)
    payload = {**json.loads(event.data), "subordinate_profile": None}
    return replace(event, data=json.dumps(payload).encode())


def job_status(job: str, status: str, time: str = NOON, **more: Any) -> BusEvent:
    """Return a status of a training job."""
    payload = {"training_job_id": derived_id("job", job), "timestamp": time, "status": status, **more}
    if status == "failed":
        payload.setdefault("error", {"code": "DATA", "message": "no evidence"})
    if status == "completed":
        payload.setdefault("artifacts", {"final_checkpoint": "v2"})
    return _event(TRAINING_STATUS, payload)


def job_request(job: str, reason: str = "manual") -> BusEvent:
    """Return the request of a training job."""
    payload = {
        "training_job_id": derived_id("job", job),
        "timestamp": NOON,
        "requester": "triggers",
        "trigger_reason": reason,
        "training_config": {"algorithm": "tfgrpo", "base_model": "m", "dataset": {"source": "nats_stream"}},
    }
    return _event(TRAINING_REQUEST, payload)


def deployed(version: str, state: str, number: int = 0, **metadata: Any) -> BusEvent:
    """Return the event of a version that came into a state, or went on in it."""
    payload = {
        "deployment_id": derived_id("deployment", version),
        "training_job_id": derived_id("job"),
        "timestamp": NOON,
        "model_info": {"model_id": version},
        "deployment_config": {
            "serving_platform": "tfgrpo",
            "model_name": version,
            "rollout_strategy": "canary",
            "traffic_percentage": number,
        },
        "validation_results": {
            "benchmark_passed": True,
            "safety_checks_passed": True,
            "performance_regression": False,
        },
        "metadata": {"deployed_by": "ada", "state": state, **metadata},
    }
    return _event(MODEL_DEPLOYED, payload)


def dead(number: int, code: str = "schema") -> BusEvent:
    """Return a dead letter."""
    return dead_event(DeadLetter(code=code, message="it is bad", data=str(number).encode()), NOON)


def _event(subject: str, payload: dict[str, Any]) -> BusEvent:
    data = json.dumps(payload)
    return BusEvent(id=derived_id(subject, data), subject=subject, time=NOON, data=data.encode())
