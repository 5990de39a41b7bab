"""The queue of training jobs on the bus: a row for each, and where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.job_rows import JOB, TABLE, job_row
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest
from pytest_tfgrpo.production.training.jobs.states import JOBS, KIND, JobState, JobTrigger
from pytest_tfgrpo.production.training.jobs.status import (
    TrainingStatus,
    status_data,
    status_event,
    status_of,
)
from pytest_tfgrpo.storage.event_store import BusEvent, change
from pytest_tfgrpo.storage.kept_states import KeptState, KeptStates

MOST_ENDED = 200
"""Ended jobs that are known."""
_WATERMARK = "watermark."
_FAILED = ("failed", "cancelled")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingJob:
    """A job as it stood when somebody looked."""

    request: TrainingRequest
    order: int
    """Sequence of its request in RL_TRAINING."""
    event_id: str
    """Of the request."""
    at: KeptState[JobState]
    status: TrainingStatus
    """The newest one."""
    started: str
    """When a process first began with it; empty before."""
    cut: Mapping[str, int]
    """Watermark of its evidence, or that it asks for: sequences by stream."""
    spent_usd: float
    """What it is known to have cost, from its bills."""
    ran_s: float
    """Seconds that services saw to it, by their own clocks."""
    stopping: bool
    """Whether somebody wants it cancelled."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self.request.id

    @property
    def state(self) -> JobState:
        """Where it stands."""
        return self.at.state

    @property
    def ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.at.state in JOBS.final


class TrainingJobs:
    """The jobs that services on one bus share; for several threads. Every method raises BusError."""

    def __init__(self, bus: Bus, owner: str) -> None:
        """`owner` names this process alone."""
        self._bus, self.owner = bus, owner
        self._rows = bus.table(TABLE)
        self._states: KeptStates[JobState, JobTrigger] = KeptStates(
            bus, JOBS, kind=KIND, start="", owner=owner
        )

    def listed(self) -> list[TrainingJob]:
        """Return all jobs, those that run first, first."""
        at = self._states.listed()
        found = [
            _job(job_row(id_, value), at.get(id_))
            for key, (value, _) in self._rows.list(JOB).items()
            for id_ in (key.removeprefix(JOB),)
        ]
        return sorted(found, key=lambda job: (job.request.rank, job.order))

    def find(self, job_id: str) -> TrainingJob | None:
        """Return a job; None if it is not known."""
        value, _ = self._rows.get(JOB + job_id)
        return None if value is None else _job(job_row(job_id, value), self._states.at(job_id))

    def conflict(self, request: TrainingRequest) -> str:
        """Return why a request cannot become a job, as another has its id or its watermark; else nothing."""
        if self.find(request.id) is not None:
            return f"there is a job {request.id} already; give the request an id of its own"
        other = self._user_of(request)
        return f"job {other} has the same watermark, so there is no new data for another" if other else ""

    def submit(self, request: TrainingRequest) -> str:
        """Publish a request and queue its job; returns why it cannot become one, else nothing."""
        if problem := self.conflict(request):
            return problem
        event = request.event()
        return self.add(replace(event, sequence=self._bus.publish([event])[0]), request)

    def add(self, event: BusEvent, request: TrainingRequest) -> str:
        """Queue the job of an event; returns why it cannot be, else nothing. Repeats are harmless."""
        known = self.find(request.id)
        if known is not None and known.event_id != event.id:
            return f"there is a job {request.id} already; give the request an id of its own"
        if known is None:
            if not self._claim(request):
                return self.conflict(request)
            row = {"event": event.id, "order": event.sequence, "request": request.payload}
            with suppress(RevisionConflict):  # another process takes the same event
                self._rows.put(JOB + request.id, json.dumps(row).encode(), 0)
            known = self.find(request.id)
        if known is not None and known.state == "":
            self.take(known, "request", {})
        return ""

    def take(
        self, job: TrainingJob, trigger: JobTrigger, parts: Mapping[str, Json], time: str = ""
    ) -> TrainingJob | None:
        """Store a transition with the status that it owes; None where the job stands elsewhere by now."""
        time = time or utc_now()
        state = JOBS.after(job.state, trigger)
        if state is None:
            return None
        status = status_of(job.request, state, time, parts)
        begun = {"started": time} if state == "running" else {}
        self._note(job.id, lambda row: {**begun, **row, **_noted(row, status)})
        taken = self._states.take(job.at, trigger, time=time, data=status_data(status))
        if state in JOBS.final:
            self._prune(time[:10])
        return None if taken is None else self.find(job.id)

    def note_status(self, job: TrainingJob, status: TrainingStatus) -> None:
        """Keep what is said of a job while it runs."""
        self._note(job.id, lambda row: {**row, **_noted(row, status)})

    def restate(self, job_id: str, metadata: Mapping[str, Json], time: str) -> None:
        """Publish the last status of a job that ended again, with what more is known of it since `time`.

        Does nothing where it says so already, or there is no such job.
        """
        job = self.find(job_id)
        if job is None or not job.ended:
            return
        known = job.status.get("metadata", {})
        if {**known, **metadata} == known:
            return
        status = {**job.status, "metadata": {**known, **metadata, "amended_at": time}}
        self._bus.publish([replace(status_event(status), time=time)])
        self.note_status(job, status)

    def note_ran(self, job_id: str, ran_s: float) -> None:
        """Keep for how many seconds services saw to a job so far."""
        self._note(job_id, lambda row: {**row, "ran_s": round(ran_s, 3)})

    def note_cut(self, job_id: str, watermark: Mapping[str, int]) -> None:
        """Keep how far the evidence of a job goes."""
        self._note(job_id, lambda row: {**row, "cut": dict(watermark)})

    def cancel(self, job_id: str) -> JobState | None:
        """Cancel a job that is queued, or ask whoever runs it to; returns where it stands then.

        None if it is not known; an ended job stays as it is.
        """
        while True:
            job = self.find(job_id)
            if job is None or job.ended:
                return None if job is None else job.state
            if job.state == "running":
                self._note(job_id, lambda row: {**row, "stopping": True})
                return "running"
            if self.take(job, "cancel", {}) is not None:
                return "cancelled"

    def _note(self, job_id: str, to: Callable[[dict[str, Json]], dict[str, Json]]) -> None:
        def noted(value: bytes | None) -> bytes | None:
            return None if value is None else json.dumps(to(job_row(job_id, value))).encode()

        change(self._rows, JOB + job_id, noted)

    def _claim(self, request: TrainingRequest) -> bool:
        """Take the watermark of a request for its job."""
        if not request.watermark:
            return True
        while True:
            if self._user_of(request):
                return False
            value, revision = self._rows.get(_mark(request))
            if value == request.id.encode():
                return True
            with suppress(RevisionConflict):
                self._rows.put(_mark(request), request.id.encode(), revision)
                return True

    def _user_of(self, request: TrainingRequest) -> str:
        """Return the job that has the watermark of a request, unless it failed or was cancelled."""
        value = self._rows.get(_mark(request))[0] if request.watermark else None
        other = "" if value is None else value.decode()
        if other in ("", request.id):
            return ""
        job = self.find(other)
        return "" if job is None or job.state in _FAILED else other

    def _prune(self, day: str) -> None:
        """Forget the oldest of the ended jobs, and what watermarks they had, but no bill of the day."""
        ended = sorted((job for job in self.listed() if job.ended), key=lambda job: job.order)
        for job in ended[:-MOST_ENDED]:
            if job.spent_usd and max(job.started, job.status["timestamp"])[:10] >= day:
                continue
            for key in (JOB + job.id, *([_mark(job.request)] if job.request.watermark else [])):
                change(self._rows, key, lambda _: None)
            self._states.forget(job.id)


def queue_depth(jobs: Iterable[TrainingJob]) -> int:
    """Return how many of the jobs wait: what an operator scales by."""
    return sum(job.state == "queued" for job in jobs)


def _noted(row: Mapping[str, Json], status: TrainingStatus) -> dict[str, Json]:
    """Return what a row keeps of a status: it, and the bill, which later ones may lack."""
    billed = status.get("resource_usage", {}).get("cost_usd") or 0.0
    return {"status": status, "spent": max(row.get("spent", 0.0), billed)}


def _mark(request: TrainingRequest) -> str:
    return _WATERMARK + derived_id(request.watermark)


def _job(row: dict[str, Json], at: KeptState[JobState] | None) -> TrainingJob:
    request = TrainingRequest(payload=row["request"])
    at = at or KeptState(request.id, "", "", 0)
    status = row.get("status", {})
    if status.get("status") != at.state:  # the row is ahead of the state
        status = status_of(request, at.state or "queued", request.payload["timestamp"], {})
    return TrainingJob(
        request=request,
        order=row["order"],
        event_id=row["event"],
        at=at,
        status=status,
        started=row.get("started", ""),
        cut=row.get("cut") or request.payload.get("metadata", {}).get("watermark", {}),
        spent_usd=row.get("spent", 0.0),
        ran_s=row.get("ran_s", 0.0),
        stopping=row.get("stopping", False),
    )
