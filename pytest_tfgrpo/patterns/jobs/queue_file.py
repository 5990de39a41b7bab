"""The file of a queue of jobs: its tables, and a row as a value."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import parse_manifest
from pytest_tfgrpo.storage.database import DatabaseKind

_TABLES = (
    """CREATE TABLE jobs (
        place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, manifest TEXT NOT NULL,
        status TEXT NOT NULL, waits INTEGER NOT NULL, holder TEXT NOT NULL, beat INTEGER NOT NULL,
        lost INTEGER NOT NULL, revision INTEGER NOT NULL, written INTEGER NOT NULL)""",
    """CREATE TABLE owed (
        n INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL, logged INTEGER NOT NULL,
        alert TEXT NOT NULL, failure TEXT NOT NULL)""",
    """CREATE TABLE seen (
        job TEXT NOT NULL, reviewer TEXT NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (job, reviewer)) WITHOUT ROWID""",
)
QUEUE = DatabaseKind(
    what="queue of jobs",
    application=0x74666C71,  # tflq
    migrations=(_TABLES,),
    error=StoreError,
    pragmas=("synchronous = FULL",),
)
_COLUMNS = "id, manifest, waits, holder, beat, lost, revision"


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuedJob:
    """A job as its row has it."""

    manifest: JobManifest
    waits: bool
    """Whether a person has to release it before it is worked."""
    holder: str
    """Who has its lease; empty: nobody."""
    beat: int
    """Grows with each renewal of the lease."""
    lost: int
    """Leases that were lost since it was last put into the queue."""
    revision: int
    """Grows with each change of the manifest."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self.manifest.job_id

    @property
    def status(self) -> LearningStatus:
        """Where it stands."""
        return self.manifest.status


def rows(db: sqlite3.Connection, where: str = "", values: tuple[object, ...] = ()) -> list[QueuedJob]:
    """Return the jobs that fit a condition, the oldest first; raises StoreError on a damaged row."""
    found = db.execute(f"SELECT {_COLUMNS} FROM jobs {where} ORDER BY place", values).fetchall()
    return [_job(*row) for row in found]


def _job(id_: str, text: str, waits: int, holder: str, beat: int, lost: int, revision: int) -> QueuedJob:
    manifest = parse_manifest(text, f"queue of jobs, job {id_}")
    return QueuedJob(
        manifest=manifest, waits=bool(waits), holder=holder, beat=beat, lost=lost, revision=revision
    )


def insert(db: sqlite3.Connection, job: QueuedJob) -> None:
    """Put a new job behind the last one."""
    db.execute(
        "INSERT INTO jobs (id, manifest, status, waits, holder, beat, lost, revision, written) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (job.id, _text(job.manifest), job.status, job.waits, job.holder, job.beat, job.lost, job.revision),
    )


def update(db: sqlite3.Connection, job: QueuedJob) -> None:
    """Put a job's new values into its row."""
    db.execute(
        "UPDATE jobs SET manifest = ?, status = ?, waits = ?, holder = ?, beat = ?, lost = ?, revision = ? "
        "WHERE id = ?",
        (_text(job.manifest), job.status, job.waits, job.holder, job.beat, job.lost, job.revision, job.id),
    )


def _text(manifest: JobManifest) -> str:
    return json.dumps(to_wire(manifest), ensure_ascii=True, sort_keys=True)


def write_owed(db: sqlite3.Connection, entry: Mapping[str, Json], alert: str = "") -> None:
    """Owe a line to the log, and an alert."""
    value = {"id": str(uuid.uuid4()), "time": utc_now(), **entry}
    db.execute(
        "INSERT INTO owed (entry, logged, alert, failure) VALUES (?, 0, ?, '')",
        (json.dumps(value, ensure_ascii=True, sort_keys=True), alert),
    )
