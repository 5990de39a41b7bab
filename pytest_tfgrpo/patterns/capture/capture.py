"""Captures finished work as a job: a snapshot, what was asked for, and which commands ran."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_tfgrpo.core.errors import SnapshotError, describe
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.patterns.capture.git_writer import open_writer
from pytest_tfgrpo.patterns.capture.history import WorkHistory, history_lines
from pytest_tfgrpo.patterns.capture.job_folder import (
    DIFF,
    HISTORY,
    PROMPT,
    TARBALL,
    abandoned,
    finish,
    make_learning_folder,
    staged_folder,
    write_files,
)
from pytest_tfgrpo.patterns.capture.screen import RefusedChange
from pytest_tfgrpo.patterns.capture.snapshot import take_snapshot
from pytest_tfgrpo.patterns.jobs.manifest import (
    REFS,
    CapturedWork,
    CaptureTrigger,
    JobManifest,
    LearningStatus,
    TestAuthor,
)
from pytest_tfgrpo.patterns.jobs.manifest_file import write_manifest
from pytest_tfgrpo.privacy.redact import redact

if TYPE_CHECKING:
    from pytest_tfgrpo.core.wire.wire import Json
    from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace
    from pytest_tfgrpo.patterns.capture.snapshot import MadeTree, TakenSnapshot

WAITS_S = (0.5, 1.0)
"""Before the second and the third try."""
NOTHING = "nothing has changed"
CRITERIA = "## Acceptance criteria"


class JobSink(Protocol):
    """The queue of jobs, as a capture needs it."""

    def add(self, manifest: JobManifest, /) -> None:
        """Take a job whose folder is there; raises StoreError."""
        ...

    def note(self, event: str, entry: Mapping[str, Json], /) -> None:
        """Have a line in the log; raises StoreError."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureRequest:
    """What is captured, whose work it is, and where the job goes."""

    repository: Path
    """Any folder of the working tree."""
    learning: Path
    """The folder of jobs; untracked files in the output folder around it are not captured."""
    task_id: str
    approver: str
    trigger: CaptureTrigger = "approval"
    tests_by: TestAuthor = "unknown"
    merge: str | None = None
    """A commit or merge whose change is captured instead of the working tree."""
    made: MadeTree | None = None
    """What is captured instead of either."""
    improves: str = ""
    """Id of the job whose fix `made` makes again."""
    prompt: str = ""
    criteria: str = ""
    history: WorkHistory = WorkHistory()

    @property
    def out(self) -> Path:
        """The output folder."""
        return self.learning.parent.parent


def capture(
    request: CaptureRequest,
    environ: Mapping[str, str],
    queue: JobSink,
    sleep: Callable[[float], object] = time.sleep,
) -> JobManifest | None:
    """Capture finished work, put the job into the queue and return it; None where nothing has changed.

    A job with a secret or a large file is ``refused``, one whose snapshot failed three times is
    ``snapshot_failed``; neither has a snapshot. Raises SettingError with advice where the work is not
    finished, and JournalError, StoreError and OSError where the job cannot be written. Of `environ` the
    places of git's settings are used.
    """
    place = locate(request.repository)
    make_learning_folder(request.learning)
    _clear(place, request.learning)
    job = JobManifest(
        job_id=str(uuid.uuid4()),
        captured=CapturedWork(
            task_id=request.task_id,
            repository=str(place.root),
            created_at=utc_now(),
            approver=request.approver,
            trigger=request.trigger,
            tests_by=request.tests_by,
            improves=request.improves,
        ),
    )
    written = _try(request, place, job, environ, sleep)
    if written is None:
        queue.note("skipped", {"reason": NOTHING, "approver": request.approver})
    else:
        queue.add(written)
    return written


def _try(
    request: CaptureRequest,
    place: RepositoryPlace,
    job: JobManifest,
    environ: Mapping[str, str],
    sleep: Callable[[float], object],
) -> JobManifest | None:
    """Return the job as written, after the third failure without its snapshot; None: nothing changed."""
    for wait_s in (*WAITS_S, None):
        taking = take_snapshot(
            place,
            job.job_id,
            int(time.time()),
            environ,
            merge=request.merge,
            made=request.made,
            leave_out=request.out,
        )
        try:
            with taking as taken:
                return None if taken is None else _write(request, job, taken)
        except RefusedChange as refused:
            job = replace(job, status=LearningStatus.REFUSED, reason=str(refused))
            break
        except (SnapshotError, OSError) as error:
            said = str(error) if isinstance(error, SnapshotError) else describe(error)
            job = replace(job, reason=line(said, 1000))
        if wait_s is not None:
            sleep(wait_s)
    else:
        job = replace(job, status=LearningStatus.SNAPSHOT_FAILED, root_cause=RootCause.SNAPSHOT_INTEGRITY)
    return _write(request, job, None)


def _write(request: CaptureRequest, job: JobManifest, taken: TakenSnapshot | None) -> JobManifest:
    """Write the folder of a job, let the repository have its snapshot, and return it."""
    files = {
        PROMPT: prompt_text(request).encode("utf-8", "backslashreplace"),
        HISTORY: history_lines(request.history),
    }
    if taken is not None:
        whose = replace(job.captured, files=taken.files)
        job = replace(job, reason="", snapshot=taken.work, captured=whose)
        files |= {DIFF: taken.diff, TARBALL: taken.tarball}
    with staged_folder(request.learning, job.job_id) as folder:
        write_files(folder, files)
        write_manifest(folder, job)
        try:
            if taken is not None:
                taken.publish()
            finish(folder, request.learning, job.job_id)
        except BaseException:
            if taken is not None:
                with suppress(SnapshotError):
                    taken.withdraw()
            raise
    return job


def prompt_text(request: CaptureRequest) -> str:
    """Return what was asked for, without secrets: the prompt, then the criteria."""
    parts = [
        request.prompt.strip(),
        f"{CRITERIA}\n\n{request.criteria.strip()}" if request.criteria.strip() else "",
    ]
    text = redact("\n\n".join(part for part in parts if part))
    return f"{text}\n" if text else ""


def _clear(place: RepositoryPlace, learning: Path) -> None:
    """Remove what captures left that were killed: their folders, and references that no job names."""
    for name in abandoned(learning):
        with open_writer(place, {}) as git:
            git.drop(REFS + name)
