"""Training jobs for tests: requests, processes that are none, and a runner over them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.events import SCHEMAS, TRAINING_REQUEST, TRAINING_STATUS, derived_id
from pytest_tfgrpo.core.wire.schema import load_schema, violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.process import KEEPER
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest, read_request
from pytest_tfgrpo.storage.event_store import BusEvent

GROUP = {
    "domain": "words",
    "prompt": "How many vowels are in 'radar'?",
    "attempts": [{"total_reward": 1.0, "answer": "2"}, {"total_reward": 0.0, "answer": "5"}],
}


def payload(name: str = "one", algorithm: str = "tfgrpo", **more: Json) -> dict[str, Any]:
    """Return a small request whose id follows from its name."""
    return {
        "training_job_id": derived_id("job", name),
        "timestamp": "2026-01-01T12:00:00Z",
        "requester": "test",
        "trigger_reason": "manual",
        "training_config": {
            "algorithm": algorithm,
            "base_model": "small",
            "dataset": {"source": "nats_stream"},
        },
        **more,
    }


def example() -> dict[str, Any]:
    """Return the example of the schema, which asks for everything."""
    found: dict[str, Any] = copy.deepcopy(load_schema(SCHEMAS[TRAINING_REQUEST])["examples"][0])
    return found


def request(name: str = "one", algorithm: str = "tfgrpo", **more: Json) -> TrainingRequest:
    found = read_request(payload(name, algorithm, **more))
    assert isinstance(found, TrainingRequest), found
    return found


def asked(value: Json, number: int = 0) -> BusEvent:
    """Return the event of a payload that somebody published."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return BusEvent(
        id=derived_id("asked", str(number), data.decode(errors="replace")),
        subject=TRAINING_REQUEST,
        time="2026-01-01T12:00:00Z",
        data=data,
    )


def statuses(bus: Bus, name: str = "one") -> list[dict[str, Any]]:
    """Return the statuses of a job in their order; each fits the schema."""
    found = [json.loads(one.data) for one in bus.replay("RL_TRAINING") if one.subject == TRAINING_STATUS]
    for one in found:
        assert not violations(SCHEMAS[TRAINING_STATUS], one), one
    return [one for one in found if one["training_job_id"] == derived_id("job", name)]


def states(bus: Bus, name: str = "one") -> list[str]:
    return [one["status"] for one in statuses(bus, name)]


def cut(request: Mapping[str, Json], file: Path) -> None:
    """Write evidence with one group."""
    file.write_text(
        json.dumps({"schema": "tfgrpo.evidence/1", "counts": {"attempts": 2}})
        + "\n"
        + json.dumps(GROUP)
        + "\n"
    )


class FakeProcess:
    """A process that a test lets end."""

    def __init__(self, command: Sequence[str], folder: Path, cwd: Path) -> None:
        self.command, self.folder, self.cwd = list(command), folder, cwd
        self.code: int | None = None
        self.over = False
        self.signals: list[str] = []
        self.on_interrupt: int | None = 2
        """With what code it ends when it is interrupted; None: it does not."""

    def end(self, code: int | None) -> None:
        self.over, self.code = True, code

    def ended(self) -> bool:
        return self.over

    def interrupt(self) -> None:
        self.signals.append("interrupt")
        if self.on_interrupt is not None:
            self.end(self.on_interrupt)

    def kill(self) -> None:
        self.signals.append("kill")
        self.end(-9)

    def is_taken(self) -> bool:
        return (self.folder / KEEPER).exists()

    def flag(self, name: str) -> str:
        return next((one.partition("=")[2] for one in self.command if one.startswith(f"{name}=")), "")


class FakeStarter:
    """Starts such processes, and remembers them."""

    def __init__(self, then: Callable[[FakeProcess], object] = lambda _: None) -> None:
        self.then, self.made = then, list[FakeProcess]()

    def __call__(self, command: Sequence[str], folder: Path, *, cwd: Path) -> FakeProcess:
        self.made.append(process := FakeProcess(command, folder, cwd))
        self.then(process)
        return process
