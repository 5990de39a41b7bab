"""The queue of jobs: where each stands, who has it, and what each transition owes to the log and to people.

A transition and the line that it owes are one transaction. The files, the manifest of each job and the log,
follow from the rows, as `settle` writes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.manifest import JobAttempt, JobManifest, JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue_file import QUEUE, QueuedJob, insert, rows, update, write_owed
from pytest_tfgrpo.patterns.jobs.states import (
    LEASES,
    NEW,
    LearningTrigger,
    first_trigger,
    leads_to,
    needs_person,
)
from pytest_tfgrpo.storage.database import transaction

QUEUE_FILE, LOG_FILE = "queue.db", "log.jsonl"
TTL_S = 60.0
"""How long a lease stays without a renewal before another worker ends it."""
RENEWED_S = 15.0
"""Between two renewals of a lease."""


class LeaseLost(StoreError):
    """A worker's job is another's by now, or nobody's: nothing that it found of it is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkOutcome:
    """What a worker found of its job."""

    trigger: LearningTrigger
    root_cause: RootCause | None = None
    reason: str = ""
    scenario: str = ""
    broken: int = 0
    """Tests that passed before the change and fail after it."""


class JobQueue:
    """The jobs of a task, which several processes share; for one thread. Every method raises StoreError."""

    def __init__(self, folder: Path) -> None:
        """`folder` is ``learning`` in a task's output folder; it is made where it is missing."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = f"{error.strerror or error}; name a folder that you may write with --out"
            raise StoreError(f"cannot make the folder {folder}: {why}") from error
        self.path = folder / QUEUE_FILE
        self._db = QUEUE.open(self.path)

    def __enter__(self) -> Self:
        """Return the queue."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def folder_of(self, job_id: str) -> Path:
        """Return the folder of a job."""
        return self.folder / job_id

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Change rows, alone among all processes: all of it, or nothing."""
        with QUEUE.advised(self.path), transaction(self._db) as db:
            yield db

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read rows."""
        with QUEUE.advised(self.path):
            yield self._db

    def jobs(self) -> list[QueuedJob]:
        """Return all jobs, the oldest first."""
        with self.reading() as db:
            return rows(db)

    def find(self, name: str) -> QueuedJob:
        """Return the job of an id, or of the beginning of one; raises SettingError where none or two fit."""
        found = [job for job in self.jobs() if name and job.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} jobs begin with {name!r}; write more of it" if found else f"no job is {name!r}"
        raise SettingError(f"{self.folder}: {what}; `tfgrpo learn status` lists them")

    def add(self, manifest: JobManifest) -> None:
        """Put a new job into the queue, or on file where its capture failed; again is harmless."""
        proposed = manifest.captured.trigger == "self"
        trigger = first_trigger(manifest.status, proposed=proposed)
        job = QueuedJob(
            manifest=manifest, waits=proposed and not manifest.released_by,
            holder="", beat=0, lost=0, revision=1,
        )  # fmt: skip
        with self.changing() as db:
            if rows(db, "WHERE id = ?", (manifest.job_id,)):
                return
            insert(db, job)
            _owe(db, job, NEW, trigger, {"by": manifest.captured.approver})

    def note(self, event: str, entry: Mapping[str, Json]) -> None:
        """Have a line in the log that is no transition of a job."""
        with self.changing() as db:
            write_owed(db, {"event": event, **entry})

    def take(self, holder: str, *, only: str = "") -> QueuedJob | None:
        """Give the oldest job that waits for a worker to `holder`, a name that nobody had; None: none does.

        `only` is the id of the one to take.
        """
        with self.changing() as db:
            where = "WHERE status = ? AND NOT waits" + " AND id = ?" * bool(only)
            found = rows(db, where, (LearningStatus.QUEUED, *([only] if only else ())))
            if not found:
                return None
            old, manifest = found[0], found[0].manifest
            attempt = JobAttempt(worker=holder, started_at=utc_now())
            manifest = replace(manifest, attempts=(*manifest.attempts, attempt))
            taken = replace(old, holder=holder, beat=old.beat + 1)
            return self._move(db, old, replace(taken, manifest=manifest), "take", by=holder)

    def renew(self, job_id: str, holder: str) -> bool:
        """Renew a lease; False where it was lost."""
        with self.changing() as db:
            done = db.execute(
                "UPDATE jobs SET beat = beat + 1 WHERE id = ? AND holder = ? AND status = ?",
                (job_id, holder, LearningStatus.RUNNING),
            )
            return done.rowcount == 1

    def finish(
        self, job_id: str, holder: str, outcome: WorkOutcome, publish: Callable[[], None] | None = None
    ) -> QueuedJob:
        """Keep what `holder` found of its job; raises LeaseLost where it is another's by now.

        `publish` moves files to where they are seen, while no other process can take the job.
        """
        with self.changing() as db:
            old = self._held(db, job_id, holder)
            if publish is not None:
                publish()
            manifest = replace(
                old.manifest,
                root_cause=outcome.root_cause,
                reason=outcome.reason,
                scenario=outcome.scenario,
            )
            ended = replace(old, holder="", lost=0, manifest=manifest)
            more = {"broken": outcome.broken} if outcome.broken else {}
            return self._move(db, old, ended, outcome.trigger, by=holder, more=more)

    def add_pattern(self, job: QueuedJob, publish: Callable[[], str]) -> bool:
        """Keep the name of the pattern that `publish` writes of a proven job; False where the job changed."""
        with self.changing() as db:
            if not rows(db, "WHERE id = ? AND revision = ?", (job.id, job.revision)):
                return False
            manifest = replace(job.manifest, pattern=publish(), reason="")
            update(db, replace(job, manifest=manifest, revision=job.revision + 1))
            write_owed(db, {"event": "pattern", "job": job.id, "pattern": manifest.pattern})
            return True

    def lose(self, job_id: str, beat: int) -> QueuedJob | None:
        """End a lease that was not renewed since `beat`; None where it was, or the job has moved."""
        with self.changing() as db:
            found = rows(
                db, "WHERE id = ? AND beat = ? AND status = ?", (job_id, beat, LearningStatus.RUNNING)
            )
            if not found:
                return None
            [old] = found
            lost = old.lost + 1
            reason = f"the worker {old.holder} was lost: its lease was not renewed"
            if lost < LEASES:
                freed = replace(old, holder="", lost=lost, manifest=replace(old.manifest, reason=reason))
                return self._move(db, old, freed, "lose", by=old.holder)
            reason += f", as {lost} leases in a row"
            manifest = replace(old.manifest, root_cause=RootCause.ENVIRONMENT, reason=reason)
            freed = replace(old, holder="", lost=lost, manifest=manifest)
            return self._move(db, old, freed, "give_up", by=old.holder)

    def require(self, job_id: str, trigger: LearningTrigger) -> None:
        """Raise SettingError unless a trigger leads on from where a job stands."""
        with self.reading() as db:
            _next(self._known(db, job_id), trigger)

    def requeue(self, job_id: str, how: JobRequeue, manifest: Callable[[JobManifest], JobManifest]) -> None:
        """Put a job back into the queue as a person decided; raises SettingError where it is not for that.

        `manifest` returns what the requeue changes of it.
        """
        with self.changing() as db:
            old = self._known(db, job_id)
            changed = replace(
                manifest(old.manifest), root_cause=None, reason="", requeues=(*old.manifest.requeues, how)
            )
            released = replace(old, manifest=changed, lost=0)
            digests = {"tarball_sha256": how.tarball_sha256, "scenario_sha256": how.scenario_sha256}
            more = {"reason": how.reason} | {name: digest for name, digest in digests.items() if digest}
            self._move(db, old, released, "requeue", by=how.approver, more=more)

    def release(self, job_id: str, approver: str) -> None:
        """Let a job that an agent proposed be worked; raises SettingError where it does not wait for that."""
        with self.changing() as db:
            old = self._known(db, job_id)
            if not old.waits:
                raise SettingError(f"job {job_id} waits for no approval: it is {old.status.value}")
            if approver == old.manifest.captured.approver:
                raise SettingError(f"{approver!r} proposed job {job_id}; another, a person, approves it")
            manifest = replace(old.manifest, released_by=approver)
            update(db, replace(old, waits=False, manifest=manifest, revision=old.revision + 1))
            write_owed(db, {"event": "released", "job": job_id, "by": approver})

    def note_seen(self, job_id: str, reviewer: str) -> None:
        """Keep that a person has seen the diff of a job's tests."""
        with self.changing() as db:
            self._known(db, job_id)
            values = (job_id, reviewer, utc_now())
            done = db.execute("INSERT OR IGNORE INTO seen (job, reviewer, at) VALUES (?, ?, ?)", values)
            if done.rowcount:
                write_owed(db, {"event": "tests_seen", "job": job_id, "by": reviewer})

    def tests_seen_by(self, job_id: str) -> tuple[str, ...]:
        """Return who has seen the diff of a job's tests."""
        with self.reading() as db:
            found = db.execute("SELECT reviewer FROM seen WHERE job = ? ORDER BY at", (job_id,))
            return tuple(reviewer for (reviewer,) in found.fetchall())

    def remove(self, job: QueuedJob, away: Callable[[], None]) -> bool:
        """Take a job off the queue, once `away` has moved its files, unless it has changed: False then."""
        with self.changing() as db:
            values = (job.id, job.revision)
            if not db.execute("DELETE FROM jobs WHERE id = ? AND revision = ?", values).rowcount:
                return False
            away()
            db.execute("DELETE FROM seen WHERE job = ?", (job.id,))
            write_owed(db, {"event": "pruned", "job": job.id})
            return True

    def _known(self, db: sqlite3.Connection, job_id: str) -> QueuedJob:
        found = rows(db, "WHERE id = ?", (job_id,))
        if not found:
            raise SettingError(f"{self.folder}: no job is {job_id!r}; `tfgrpo learn status` lists them")
        return found[0]

    def _held(self, db: sqlite3.Connection, job_id: str, holder: str) -> QueuedJob:
        found = rows(db, "WHERE id = ? AND holder = ?", (job_id, holder))
        if not found or not holder:
            raise LeaseLost(f"job {job_id}: the lease was lost; nothing of this attempt is kept")
        return found[0]

    def _move(
        self,
        db: sqlite3.Connection,
        old: QueuedJob,
        new: QueuedJob,
        trigger: LearningTrigger,
        *,
        by: str,
        more: Mapping[str, Json] | None = None,
    ) -> QueuedJob:
        """Store a transition with the line that it owes; raises SettingError where it is not in the table."""
        status = _next(old, trigger)
        manifest = replace(new.manifest, status=status)
        if old.status is LearningStatus.RUNNING:
            manifest = _attempt_ended(manifest, "" if trigger in ("lose", "give_up") else status)
        moved = replace(new, manifest=manifest, revision=old.revision + 1)
        update(db, moved)
        _owe(db, moved, old.status, trigger, {"by": by, **(more or {})})
        return moved


def _next(job: QueuedJob, trigger: LearningTrigger) -> LearningStatus:
    try:
        return leads_to(job.status, trigger)
    except ValueError as error:
        raise SettingError(f"job {job.id}: {error}; `tfgrpo learn show {job.id[:8]}` has more") from None


def _owe(
    db: sqlite3.Connection, job: QueuedJob, before: str, trigger: LearningTrigger, more: Mapping[str, Json]
) -> None:
    """Owe the line of a transition, and an alert where a person is needed."""
    manifest = job.manifest
    entry: dict[str, Json] = {"event": trigger, "job": job.id, "from": before, "to": job.status.value}
    entry["reason"] = manifest.reason
    if manifest.root_cause is not None:
        entry["root_cause"] = manifest.root_cause.value
    write_owed(db, {**entry, **more}, alert="owed" if needs_person(before, trigger) else "")


def reviewers_of_tests(folder: Path, job_id: str) -> tuple[str, ...]:
    """Return who has seen the diff of the tests of a job, whose queue is in `folder`; raises StoreError."""
    if not (folder / QUEUE_FILE).is_file():
        return ()
    with JobQueue(folder) as queue:
        return queue.tests_seen_by(job_id)


def _attempt_ended(manifest: JobManifest, status: str) -> JobManifest:
    *earlier, last = manifest.attempts
    last = replace(last, ended_at=utc_now(), status=status, reason=manifest.reason)
    return replace(manifest, attempts=(*earlier, last))
