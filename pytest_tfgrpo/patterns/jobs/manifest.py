"""The manifest of a job: what was captured of finished work, by whom, and what became of it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE
from pytest_tfgrpo.harvest.fixes import RootCause

SCHEMA = "tfgrpo.learning-job/1"
REFS = "refs/learning/"
"""Where the commits of snapshots are kept: never pushed as tags are (decision 40)."""
LEARNING = "learning"
"""In a task's output folder: a folder for each job, beside their queue and log."""

CaptureTrigger: TypeAlias = Literal["approval", "merge", "self"]
"""What ended the work; ``self`` is an agent's own idea, which waits for a person before it is worked."""
TestAuthor: TypeAlias = Literal["agent", "person", "unknown"]


class LearningStatus(StrEnum):
    """Where a job stands (decision 43)."""

    QUEUED = "queued"
    RUNNING = "running"
    VALIDATED = "validated"
    VALIDATION_FAILED = "validation_failed"
    SNAPSHOT_FAILED = "snapshot_failed"
    STALLED_SNAPSHOT = "stalled_snapshot"
    NEEDS_MANUAL = "needs_manual_scenario"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class RanCommand:
    """One command that ran while the work was done, as the history or a transcript has it."""

    command: str
    exit_code: int | None = None
    """None: not known, which counts as no success."""
    started_at: str = ""
    """ISO 8601, UTC."""
    ended_at: str = ""
    cwd: str = ""
    """Relative to the repository's root; empty: the root."""
    output_tail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobAttempt:
    """One time that a worker had a job."""

    worker: str
    started_at: str
    ended_at: str = ""
    status: str = ""
    """What it led to; empty while it runs, or where its worker was lost."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRequeue:
    """One time that a person put a job back into the queue."""

    approver: str
    reason: str
    at: str
    tarball_sha256: str = field(default="", metadata=SPARSE)
    """Of the tarball that was made again from the recorded commit; empty: it was not."""
    scenario_sha256: str = field(default="", metadata=SPARSE)
    """Of the file that says how the tests run, which the approver signs by this; empty: there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkSnapshot:
    """The working tree at the moment of the approval, as a commit (decision 40)."""

    ref: str
    """`REFS` and a UUID."""
    commit: str
    base: str
    """The commit's one parent: HEAD, or of a merge its first parent."""
    tree: str
    base_tree: str
    tarball_sha256: str
    diff_sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CapturedWork:
    """Whose work was captured, when and where."""

    task_id: str
    repository: str
    """The root of the working tree."""
    created_at: str
    approver: str
    """Who approved the work; of the trigger ``self`` the agent."""
    trigger: CaptureTrigger = "approval"
    tests_by: TestAuthor = "unknown"
    files: tuple[str, ...] = ()
    """Changed paths, sorted."""
    improves: str = field(default="", metadata=SPARSE)
    """Id of the job whose proven fix an agent made again, smaller; empty: it is no such work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobManifest:
    """``manifest.json`` of a job."""

    job_id: str
    """A UUID, that of the snapshot's ref."""
    captured: CapturedWork
    snapshot: WorkSnapshot | None = None
    """None where it could not be made."""
    status: LearningStatus = LearningStatus.QUEUED
    root_cause: RootCause | None = field(default=None, metadata=SPARSE)
    reason: str = ""
    released_by: str = ""
    """The person who let a job of the trigger ``self`` be worked."""
    attempts: tuple[JobAttempt, ...] = ()
    requeues: tuple[JobRequeue, ...] = field(default=(), metadata=SPARSE)
    scenario: str = ""
    """Id of the proven scenario; its files lie beside the manifest."""
    pattern: str = ""
    """Name of the pattern that was written of it."""
    schema: str = SCHEMA
