"""What happens to one job: its lease, the look at its snapshot, the proof, the pattern."""

from __future__ import annotations

import os
import socket
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias

from pytest_tfgrpo.core.errors import StoreError, TfgrpoError, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.attempt_folder import LOGS, AttemptFolder, attempt_folder
from pytest_tfgrpo.patterns.jobs.integrity import SnapshotGit, broken
from pytest_tfgrpo.patterns.jobs.leases import LeaseKeeper
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import (
    RENEWED_S,
    TTL_S,
    JobQueue,
    LeaseLost,
    WorkOutcome,
)
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob
from pytest_tfgrpo.patterns.jobs.states import LearningTrigger
from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, cancelled_by

REASON = 1000
"""Characters of a reason."""
_TRIGGERS: dict[LearningStatus, LearningTrigger] = {
    LearningStatus.VALIDATED: "prove",
    LearningStatus.VALIDATION_FAILED: "disprove",
    LearningStatus.NEEDS_MANUAL: "defer",
}


class ProofResult(Protocol):
    """What came of the proof of a job."""

    @property
    def status(self) -> LearningStatus:
        """``validated``, ``validation_failed`` or ``needs_manual_scenario``."""
        ...

    @property
    def root_cause(self) -> RootCause | None:
        """Why it is not validated."""
        ...

    @property
    def reason(self) -> str:
        """The same in words."""
        ...

    @property
    def scenario(self) -> str:
        """Id of its scenario."""
        ...

    @property
    def broken(self) -> int:
        """Tests that passed before the change and fail after it."""
        ...


WritePattern: TypeAlias = Callable[[], str]
"""Writes a pattern, the same one again where that is repeated, and returns its name; raises TfgrpoError."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkTools:
    """What jobs are worked with."""

    git: SnapshotGit
    prove: Callable[[JobManifest, Path], ProofResult]
    """Proves a job, whose files are in a folder; raises StoreError, OSError, Cancelled."""
    author: Callable[[JobManifest, Path], WritePattern]
    """Makes the pattern of a proven job, and writes none yet; raises TfgrpoError."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkedJob:
    """A job that a worker is done with."""

    manifest: JobManifest
    elapsed_s: float
    lost: bool = False
    """Whether the lease was lost, so that nothing of it was kept."""


class LearningWorker:
    """Works one job after another; for one thread."""

    def __init__(
        self,
        queue: JobQueue,
        tools: WorkTools,
        *,
        ttl_s: float = TTL_S,
        renewed_s: float = RENEWED_S,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stopped` returns whether to let go of the job that is worked."""
        self._queue, self._tools = queue, tools
        self._ttl_s, self._renewed_s, self._stopped = ttl_s, renewed_s, stopped

    def work(self, only: str = "") -> WorkedJob | None:
        """Work the oldest job, or the one of an id; None where there is none to take.

        Raises StoreError where the queue fails, and Cancelled once `stopped`, the job being queued again.
        """
        job = self._queue.take(_holder(), only=only)
        if job is None:
            return None
        began, ended = time.monotonic(), job
        lease = LeaseKeeper(
            self._queue.folder, job.id, job.holder, ttl_s=self._ttl_s, renewed_s=self._renewed_s
        )
        try:
            with lease, cancelled_by(lambda: lease.lost or self._stopped()):
                ended = self._work(job)
        except LeaseLost:
            return WorkedJob(manifest=job.manifest, elapsed_s=time.monotonic() - began, lost=True)
        except BaseException as error:
            if lease.lost and isinstance(error, Cancelled):
                return WorkedJob(manifest=job.manifest, elapsed_s=time.monotonic() - began, lost=True)
            self._let_go(job)
            raise
        return WorkedJob(manifest=ended.manifest, elapsed_s=time.monotonic() - began)

    def _work(self, job: QueuedJob) -> QueuedJob:
        try:
            with attempt_folder(self._queue.folder_of(job.id), job.holder) as folder:
                try:
                    outcome, write = self._outcome(job.manifest, folder)
                except Exception as error:
                    if isinstance(error, Cancelled):
                        raise
                    _write_log(folder, job.manifest, "error", traceback.format_exc())
                    outcome, write = _broke(error), None
                ended = self._queue.finish(job.id, job.holder, outcome, folder.publish)
        except OSError as error:  # a full disk, or a folder that cannot be written
            if isinstance(error, LeaseLost):
                raise
            return self._queue.finish(job.id, job.holder, _broke(error))
        return ended if write is None else self._with_pattern(ended, write)

    def _with_pattern(self, job: QueuedJob, write: WritePattern) -> QueuedJob:
        """Write the pattern of a job that is proven by now; without it, `add_patterns` tries again."""
        try:
            self._queue.add_pattern(job, write)
        except (TfgrpoError, OSError) as error:
            reason = line(f"no pattern yet: {error}", REASON)
            return replace(job, manifest=replace(job.manifest, reason=reason))
        return self._queue.find(job.id)

    def _outcome(self, job: JobManifest, folder: AttemptFolder) -> tuple[WorkOutcome, WritePattern | None]:
        """Return what came of a job, and what writes its pattern once that is kept."""
        if problems := broken(job, folder.path, self._tools.git):
            _write_log(folder, job, "snapshot", "\n".join(problems) + "\n")
            _write_log(folder, job, "git-status", self._status(job))
            reason = line("; ".join(problems), REASON)
            stalled = WorkOutcome(trigger="stall", root_cause=RootCause.SNAPSHOT_INTEGRITY, reason=reason)
            return stalled, None
        proof = self._tools.prove(job, folder.path)
        outcome = WorkOutcome(
            trigger=_TRIGGERS[proof.status],
            root_cause=proof.root_cause,
            reason=line(proof.reason, REASON),
            scenario=proof.scenario if proof.status is LearningStatus.VALIDATED else "",
            broken=proof.broken,
        )
        if proof.status is not LearningStatus.VALIDATED:
            return outcome, None
        job = replace(job, status=proof.status, scenario=proof.scenario)
        try:
            return outcome, self._tools.author(job, folder.path)
        except TfgrpoError as error:
            reason = "; ".join(filter(None, (outcome.reason, f"no pattern: {error}")))
            return replace(outcome, reason=line(reason, REASON)), None

    def _status(self, job: JobManifest) -> str:
        try:
            return self._tools.git.status(Path(job.captured.repository))
        except (TfgrpoError, OSError) as error:
            return describe(error)

    def _let_go(self, job: QueuedJob) -> None:
        """Put the job back, so that another worker takes it at once; else its lease runs out."""
        try:
            self._queue.finish(job.id, job.holder, WorkOutcome(trigger="stop", reason="its worker stopped"))
        except (TfgrpoError, OSError):
            return

    def add_patterns(self) -> list[str]:
        """Write the patterns that proven jobs lack, and return a line for each; raises StoreError."""
        lines = list[str]()
        for job in self._queue.jobs():
            if job.status is LearningStatus.VALIDATED and not job.manifest.pattern:
                try:
                    write = self._tools.author(job.manifest, self._queue.folder_of(job.id))
                    self._queue.add_pattern(job, write)
                except (TfgrpoError, OSError) as error:
                    lines.append(f"job {job.id[:8]} still has no pattern: {line(str(error), REASON)}")
        return lines


def _broke(error: BaseException) -> WorkOutcome:
    advice = "; make room, then requeue it" if isinstance(error, StoreError | OSError) else ""
    reason = line(f"the proof broke: {describe(error)}{advice}", REASON)
    return WorkOutcome(trigger="disprove", root_cause=RootCause.ENVIRONMENT, reason=reason)


def _write_log(folder: AttemptFolder, job: JobManifest, what: str, text: str) -> None:
    path = folder.path / LOGS / f"{len(job.attempts)}-{what}.txt"
    path.write_text(text, "utf-8", "backslashreplace")


def own_holders() -> str:
    """Return how the names of the holders of this process begin."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-"


def _holder() -> str:
    """Return a name that no holder had before."""
    return f"{own_holders()}{uuid.uuid4().hex[:12]}"
