"""Copies requests from the stream into the queue; of bad and lost ones there are dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tfgrpo.core.events import TRAINING_REQUEST, EventRefusal
from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.job_rows import TABLE
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import DUPLICATE, read_request
from pytest_tfgrpo.production.view.view import TRAINING
from pytest_tfgrpo.storage.event_store import BusEvent, change

CONSUMER = "training-requests"
LOST = "lost"
"""Code of the dead letter that says which events the stream let go of before anyone read them."""
_AT_ONCE = 100
_READ = "read"
"""Key of the table ``training``: the newest event that was fetched."""


class RequestIntake:
    """A role of the loop, of any number of services."""

    def __init__(self, bus: Bus, jobs: TrainingJobs, scrubber: ValueScrubber | None = None) -> None:
        self._bus, self._jobs, self._scrubber = bus, jobs, scrubber
        self._consumer = bus.consumer(TRAINING, CONSUMER)
        self._rows = bus.table(TABLE)

    def step(self) -> int:
        """Take requests that are new; return how many events that were. Raises BusError."""
        events = self._consumer.fetch(_AT_ONCE, 0.0)
        if events:
            self._note(events)
        for event in events:
            self._take(event)
        return len(events)

    def close(self) -> None:
        """Let go of nothing."""

    def _note(self, events: Sequence[BusEvent]) -> None:
        """Keep how far the stream was read, and say what it let go of before."""
        first, last = events[0], events[-1].sequence
        read = int(self._rows.get(_READ)[0] or 0)
        if first.sequence > read + 1:
            oldest = next((one.sequence for one in self._bus.replay(TRAINING)), first.sequence)
            if (gone := min(oldest, first.sequence) - 1) > read:
                message = (
                    f"{TRAINING} let go of its events {read + 1} to {gone} before a service read them; "
                    "requests among them have no job: ask again"
                )
                letter = DeadLetter(code=LOST, message=message, stream=TRAINING, consumer=CONSUMER)
                self._bus.publish([dead_event(letter, first.time)])
        change(self._rows, _READ, lambda value: str(max(last, int(value or 0))).encode())

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
