"""Old jobs that ended go: folder, reference and row; the log keeps their lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.patterns.jobs.integrity import SnapshotGit
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob
from pytest_tfgrpo.sandbox.removal import remove

PRUNED = (LearningStatus.VALIDATED, LearningStatus.VALIDATION_FAILED, LearningStatus.REFUSED)
"""Where a job may go; the others wait for a worker or for a person, and nothing of them is dropped."""
_LEFT = ".pruned-"


def prune(
    queue: JobQueue, git: SnapshotGit, days: float, used: Collection[str], now: datetime
) -> Iterator[str]:
    """Remove the jobs that ended more than `days` ago, and yield a line for each that goes or is kept.

    `used` are the ids of jobs that patterns rest on, which stay. Raises StoreError.
    """
    for left in queue.folder.glob(f"{_LEFT}*"):
        remove(left)
    for job in queue.jobs():
        if job.status not in PRUNED or now - ended_at(job.manifest, now) < timedelta(days=days):
            continue
        if job.id in used:
            yield f"kept     {job.id[:8]}  {job.status.value}: a pattern rests on it"
        elif (problem := _remove(queue, git, job)) is None:
            yield f"removed  {job.id[:8]}  {job.status.value}"
        else:
            yield f"kept     {job.id[:8]}  {problem}"


def ended_at(manifest: JobManifest, otherwise: datetime) -> datetime:
    """Return when a job ended by the clock of its worker; `otherwise` where that is not known."""
    ended = [attempt.ended_at for attempt in manifest.attempts if attempt.ended_at]
    try:
        found = datetime.fromisoformat(ended[-1] if ended else manifest.captured.created_at)
    except ValueError:
        return otherwise
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _remove(queue: JobQueue, git: SnapshotGit, job: QueuedJob) -> str | None:
    """Remove a job unless it has changed meanwhile; returns why it is kept."""
    left = queue.folder / f"{_LEFT}{job.id}"

    def away() -> None:
        if job.manifest.snapshot is not None and Path(job.manifest.captured.repository).is_dir():
            git.drop(Path(job.manifest.captured.repository), job.manifest.snapshot.ref)
        folder = queue.folder_of(job.id)
        if folder.exists():
            folder.rename(left)

    try:
        if not queue.remove(job, away):
            return "it has changed meanwhile"
    except (SettingError, SnapshotError, OSError) as error:
        return f"it cannot be removed: {error}"
    remove(left)
    return None
