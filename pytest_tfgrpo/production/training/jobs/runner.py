"""Runs the jobs of the queue, one at a time over all services that share it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError, ExportError, TfgrpoError, describe
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob, TrainingJobs
from pytest_tfgrpo.production.training.jobs.limits import JobLimits
from pytest_tfgrpo.production.training.jobs.request_intake import CONSUMER
from pytest_tfgrpo.production.training.jobs.status import JobOutcome, failed, status_event, status_of
from pytest_tfgrpo.production.training.jobs.work import EVIDENCE_FILE, CutEvidence, JobWork, OpenWork
from pytest_tfgrpo.production.training.versions.retention import remove_old_jobs
from pytest_tfgrpo.production.view.view import TRAINING
from pytest_tfgrpo.storage.lease import TTL_S, Lease

LEASE = "training"
EVERY_S = 60.0
"""Between two statuses of a job that runs."""
CROWDED = 1_000
"""Events that nobody took requests from yet, beyond which these stay off the stream: it keeps 10,000."""
GRACE_S = 30.0
"""That a process has to end in order, before it is killed."""
HANDOVER_S = 10.0
"""That another service has to take up a process; where it does not share the folder, both run meanwhile."""
_TIDY_S = 86_400.0
"""Between two looks at folders of old jobs."""
_LOOK_S, _IDLE_S = 0.5, 2.0
"""Between two looks at the job, and at the queue where there is none."""


class TrainingRunner:
    """A role of the loop: the process of one job, while it holds the lease; for one thread."""

    def __init__(
        self,
        bus: Bus,
        jobs: TrainingJobs,
        folder: Path,
        *,
        cut: CutEvidence,
        openers: Mapping[str, OpenWork],
        limits: JobLimits,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`openers` are by algorithm: a job of another one stays in the queue, for another service."""
        self._jobs, self._folder, self._cut, self._openers = jobs, folder, cut, openers
        self._limits, self._clock, self._wall = limits, clock, wall
        self._requests = bus.consumer(TRAINING, CONSUMER)
        self._lease = Lease(bus, LEASE, jobs.owner, ttl_s=ttl_s, clock=clock)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tfgrpo-cut")
        self._now: _RunningJob | None = None
        self._look_at = self._tidy_at = float("-inf")

    def step(self) -> int:
        """Go on with the job; returns 1 where it changed state. Raises BusError, OSError; then it goes on."""
        if not self._lease.hold():
            self._leave()
            return 0
        if self._now is not None and self._now.left is not None:  # the other service is gone too
            self._now = None
        if self._clock() < self._look_at:
            return 0
        self._look_at = self._clock() + _LOOK_S
        if self._clock() >= self._tidy_at:
            self._tidy_at = self._clock() + _TIDY_S
            going_on = {job.id for job in self._jobs.listed() if not job.ended}
            remove_old_jobs(self._folder, going_on=going_on, now=self._wall())
        return self._take_next() if self._now is None else self._go_on(self._now)

    def close(self) -> None:
        """Interrupt the process, whose run another service resumes, and let it take the lease at once."""
        if self._now is not None:
            with suppress(BusError):
                if not self._lease.hold():
                    self._leave()
        if self._now is not None and self._now.work is not None:
            work = self._now.work
            with suppress(TfgrpoError, OSError):
                work.interrupt()
            until = time.monotonic() + GRACE_S
            while time.monotonic() < until and not self._is_over(work):
                time.sleep(0.05)
        if self._now is not None:
            with suppress(TfgrpoError):
                self._jobs.note_ran(self._now.job.id, self._now.ran_s(self._clock()))
        self._drop()
        self._pool.shutdown(cancel_futures=True)
        self._lease.release()

    @staticmethod
    def _is_over(work: JobWork) -> bool:
        try:
            return work.look() is not None
        except (TfgrpoError, OSError):
            return True

    def _leave(self) -> None:
        """Leave the job to the service that has the lease, with its process; end what nobody takes up."""
        now = self._now
        if now is None:
            return
        if now.left is None:
            now.left = self._clock()
        if now.work is None or now.work.leave():
            self._now = None
        elif self._clock() >= now.left + HANDOVER_S:
            self._drop()

    def _drop(self) -> None:
        """Let go of the job, and let nothing of it run on."""
        if self._now is not None and self._now.work is not None:
            with suppress(OSError):
                self._now.work.kill()
        self._now = None

    def _take_next(self) -> int:
        jobs = self._jobs.listed()
        ready = [job for job in jobs if job.state == "running"] or [
            job for job in jobs if job.state == "queued" and job.request.algorithm in self._openers
        ]
        if not ready:
            self._look_at = self._clock() + _IDLE_S
            return 0
        if ready[0].state == "queued" and (why := self._limits.waiting(jobs, self._time())):
            self._look_at = self._clock() + _IDLE_S
            self._say_waiting(ready[0], why)
            return 0
        job = self._jobs.take(ready[0], "start" if ready[0].state == "queued" else "resume", {}, self._time())
        if job is None:
            return 0
        self._now = _RunningJob(job, self._clock(), job.ran_s + self._unseen_s(ready[0]))
        return 1

    def _unseen_s(self, job: TrainingJob) -> float:
        """Return how long a job ran unnoted: a minute at most, whatever the clock of the day says."""
        if job.state != "running":
            return 0.0
        return min(EVERY_S, max(0.0, self._wall() - _seconds(str(job.status["timestamp"]))))

    def _go_on(self, now: _RunningJob) -> int:
        try:
            outcome = self._worked(now)
        except BusError:  # it may pass, and the process goes on meanwhile
            raise
        except (TfgrpoError, OSError) as error:
            parts: Mapping[str, Json] = {}
            if now.work is not None:
                now.work.kill()
                parts = now.work.parts()
            outcome = failed("INFRA", describe(error), "", parts)
        if outcome is not None:
            return self._end(now, outcome)
        if self._clock() >= now.report_at:
            now.report_at = self._clock() + EVERY_S
            self._report(now)
        return 0

    def _worked(self, now: _RunningJob) -> JobOutcome | None:
        """Return how the job ended, or None; raises TfgrpoError and OSError."""
        folder = self._folder / now.job.id
        self._watch(now)
        if now.work is not None:
            outcome = now.work.look()
            if outcome is not None or now.stopped is None:
                return outcome
            if self._clock() >= now.stopped + GRACE_S:
                now.work.kill()
            return None
        if now.why:
            return JobOutcome(trigger="cancel", parts={})
        if now.cutting is None:
            folder.mkdir(parents=True, exist_ok=True)
            now.cutting = self._pool.submit(self._evidence, now.job, folder)
        if not now.cutting.done():
            return None
        cutting, now.cutting = now.cutting, None
        try:
            groups, now.samples = cutting.result()
        except ExportError as error:
            return failed("DATA", describe(error))
        if not groups:
            return failed("DATA", "no task has attempts with different rewards; wait for more feedback")
        now.work = self._openers[now.job.request.algorithm](now.job, folder)
        return None

    def _evidence(self, job: TrainingJob, folder: Path) -> tuple[int, int | None]:
        """Cut what the job learns from, and return how many groups and attempts it has, if that is known."""
        file = folder / EVIDENCE_FILE
        self._cut(job.request.payload, file)
        if not file.exists():  # it is in the journal of the run
            return 1, None
        with file.open("rb") as lines:
            header = load_json(lines.readline())
            self._jobs.note_cut(job.id, header.get("watermark", {}))
            return sum(1 for _ in lines), header.get("counts", {}).get("attempts")

    def _watch(self, now: _RunningJob) -> None:
        """Interrupt a job that somebody cancelled, or that takes too long."""
        if now.why:
            return
        known = self._jobs.find(now.job.id)
        if known is not None and known.stopping:
            now.why = "cancelled"
        elif now.ran_s(self._clock()) > self._limits.timeout_s:
            now.why = "timeout"
        if now.why and now.work is not None:
            now.stopped = self._clock()
            now.work.interrupt()

    def _end(self, now: _RunningJob, outcome: JobOutcome) -> int:
        if now.why == "timeout" and outcome.trigger == "cancel":
            limit = f"{self._limits.timeout_s / 3600:g} h"
            outcome = failed(
                "TIMEOUT", f"the job took longer than {limit}; raise [training] timeout_h", "", outcome.parts
            )
        parts = outcome.parts
        if now.samples is not None:
            parts = {**parts, "metadata": {**parts.get("metadata", {}), "samples": now.samples}}
        if self._jobs.take(now.job, outcome.trigger, parts, self._time()) is None:
            self._drop()  # somebody else has it
        self._now = None
        return 1

    def _time(self) -> str:
        now = datetime.fromtimestamp(self._wall(), UTC).isoformat(timespec="milliseconds")
        return now.replace("+00:00", "Z")

    def _say_waiting(self, job: TrainingJob, why: str) -> None:
        """Publish once why a job waits."""
        if job.status.get("metadata", {}).get("waiting") == why:
            return
        status = status_of(job.request, "queued", self._time(), {"metadata": {"waiting": why}})
        self._jobs.note_status(job, status)
        self._lease.publish([status_event(status)], None)

    def _report(self, now: _RunningJob) -> None:
        parts = {} if now.work is None else now.work.parts()
        status = status_of(now.job.request, "running", self._time(), parts)
        self._jobs.note_status(now.job, status)
        self._jobs.note_ran(now.job.id, now.ran_s(self._clock()))
        if self._requests.lag() < CROWDED:
            self._lease.publish([status_event(status)], None)


class _RunningJob:
    """The job at hand."""

    def __init__(self, job: TrainingJob, clock: float, ran_s: float) -> None:
        self.job = job
        self._since, self._ran_s = clock, ran_s
        self.cutting: Future[tuple[int, int | None]] | None = None
        self.samples: int | None = None
        """Attempts of its evidence; None where they are not known."""
        self.work: JobWork | None = None
        self.why = ""
        """Why it is to end: cancelled, timeout."""
        self.stopped: float | None = None
        """When its process was interrupted."""
        self.left: float | None = None
        """When another service had the lease."""
        self.report_at = clock + EVERY_S

    def ran_s(self, clock: float) -> float:
        """Return for how many seconds services saw to it."""
        return self._ran_s + clock - self._since


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).astimezone(UTC).timestamp()
