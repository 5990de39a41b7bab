"""Leases of jobs: who works one renews its lease, and who sees one that stays as it is ends it.

No clock is compared with another's: a watcher counts from when it first saw a lease, by its own monotonic
clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import RENEWED_S, TTL_S, JobQueue
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob


class LeaseKeeper:
    """Renews the lease of one job, in a thread of its own; a context manager."""

    def __init__(
        self, folder: Path, job_id: str, holder: str, *, ttl_s: float = TTL_S, renewed_s: float = RENEWED_S
    ) -> None:
        """`folder` is that of the queue, `holder` who took the job."""
        self._folder, self._job_id, self._holder = folder, job_id, holder
        self._ttl_s, self._renewed_s = ttl_s, renewed_s
        self._ended, self._lost = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._renew, name="tfgrpo-learn-lease", daemon=True)

    def __enter__(self) -> Self:
        """Begin to renew it."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Renew it no longer."""
        self._ended.set()
        self._thread.join()

    @property
    def lost(self) -> bool:
        """Whether the lease was lost, or could not be renewed for so long that it is taken to be."""
        return self._lost.is_set()

    def _renew(self) -> None:
        renewed_at = time.monotonic()
        while not self._ended.wait(self._renewed_s):
            with suppress(StoreError), JobQueue(self._folder) as queue:
                if not queue.renew(self._job_id, self._holder):
                    self._lost.set()
                    return
                renewed_at = time.monotonic()
            if time.monotonic() - renewed_at > self._ttl_s:
                self._lost.set()
                return


class LeaseWatch:
    """What one process sees of the leases of others; for several threads."""

    def __init__(self, *, ttl_s: float = TTL_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s, self._clock = ttl_s, clock
        self._seen: dict[str, tuple[str, int, float, bool]] = {}
        """Holder, beat, when it was first seen, and whether it was renewed meanwhile; by job."""
        self._lock = threading.Lock()

    def look(self, queue: JobQueue) -> list[QueuedJob]:
        """End the leases that were not renewed for long enough, and return their jobs; raises StoreError."""
        with self._lock:
            running = [job for job in queue.jobs() if job.status is LearningStatus.RUNNING]
            self._seen = {job.id: self._looked(job) for job in running}
            late = [job for job in running if self._clock() - self._seen[job.id][2] >= self._ttl_s]
            found = [queue.lose(job.id, job.beat) for job in late]
        return [job for job in found if job is not None]

    def is_unsure(self, own: str) -> bool:
        """Return whether a job was running at the last look whose worker may be gone.

        The names of the holders of this process begin with `own`.
        """
        with self._lock:
            seen = self._seen.values()
            return not all(renewed or holder.startswith(own) for holder, _, _, renewed in seen)

    def _looked(self, job: QueuedJob) -> tuple[str, int, float, bool]:
        holder, beat, _, _ = known = self._seen.get(job.id, ("", 0, 0.0, False))
        if (holder, beat) == (job.holder, job.beat):
            return known
        return job.holder, job.beat, self._clock(), holder == job.holder
