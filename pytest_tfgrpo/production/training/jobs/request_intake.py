"""Copies requests from the stream into the queue; bad ones become dead letters."""

from __future__ import annotations

from pytest_tfgrpo.core.events import TRAINING_REQUEST, EventRefusal
from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import DUPLICATE, read_request
from pytest_tfgrpo.production.view.view import TRAINING
from pytest_tfgrpo.storage.event_store import BusEvent

CONSUMER = "training-requests"
_AT_ONCE = 100


class RequestIntake:
    """A role of the loop, of any number of services."""

    def __init__(self, bus: Bus, jobs: TrainingJobs, scrubber: ValueScrubber | None = None) -> None:
        self._jobs, self._scrubber = jobs, scrubber
        self._consumer = bus.consumer(TRAINING, CONSUMER)

    def step(self) -> int:
        """Take requests that are new; return how many events that were. Raises BusError."""
        events = self._consumer.fetch(_AT_ONCE, 0.0)
        for event in events:
            self._take(event)
        return len(events)

    def close(self) -> None:
        """Let go of nothing."""

    def _take(self, event: BusEvent) -> None:
        if event.subject == TRAINING_REQUEST:
            request = read_request(event.data, self._scrubber)
            if isinstance(request, EventRefusal):
                where = f"{request.pointer}: " if request.pointer else ""
                self._consumer.bury([event], str(request.fault), where + request.message)
                return
            if problem := self._jobs.add(event, request):
                self._consumer.bury([event], DUPLICATE, problem)
                return
        self._consumer.ack([event])
