"""A person puts a job back into the queue: with the snapshot made again, or with how its tests run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError, SnapshotError, StoreError
from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.harvest.recipe.recipe_file import LARGEST, parse_recipes
from pytest_tfgrpo.patterns.jobs.integrity import DIFF, RECIPE, TARBALL, MadeSnapshot, SnapshotGit
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, JobRequeue
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob


def requeue(
    queue: JobQueue,
    job: QueuedJob,
    git: SnapshotGit,
    how: JobRequeue,
    *,
    rebuild: bool = False,
    scenario: Path | None = None,
) -> JobRequeue:
    """Put a job back into the queue, and return how, with the digests of what was made or signed.

    `rebuild` makes its files again from the recorded commit; where there is no snapshot it takes one of the
    working tree as it is. `scenario` is a file as ``harvest.toml``, which the approver signs by its sha256.
    Raises SettingError where the job is not for that or the file is wrong, SnapshotError, StoreError.
    """
    queue.require(job.id, "requeue")
    made = _made(queue, job.manifest, git) if rebuild else None
    if made is None and job.manifest.snapshot is None:
        raise SettingError(
            f"job {job.id} has no snapshot: let --rebuild take one of the working tree as it is now, or "
            "capture the work again"
        )
    files: dict[str, bytes] = {}
    if made is not None:
        files |= {DIFF: made.diff, TARBALL: made.tarball}
        how = replace(how, tarball_sha256=made.work.tarball_sha256)
    if scenario is not None:
        files[RECIPE] = _signed(scenario)
        how = replace(how, scenario_sha256=stamp_bytes(files[RECIPE]))

    def changed(manifest: JobManifest) -> JobManifest:
        _write(queue.folder_of(job.id), files)
        if made is None:
            return manifest
        captured = replace(manifest.captured, files=made.files)
        return replace(manifest, snapshot=made.work, captured=captured)

    queue.requeue(job.id, replace(how, at=utc_now()), changed)
    return how


def _made(queue: JobQueue, manifest: JobManifest, git: SnapshotGit) -> MadeSnapshot:
    """Return the snapshot of a job, made again; raises SettingError, SnapshotError, StoreError."""
    try:
        if manifest.snapshot is None:
            return git.retake(manifest, queue.folder.parent.parent)
        return git.rebuild(manifest.snapshot, Path(manifest.captured.repository))
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"the snapshot of job {manifest.job_id} cannot be made: {error}") from error
    except SnapshotError as error:
        raise SnapshotError(f"the snapshot of job {manifest.job_id} cannot be made again: {error}") from error


def _signed(path: Path) -> bytes:
    """Return a file that says how tests run; raises SettingError naming file, line, key and value."""
    try:
        data = read_plain(path, LARGEST)
        text = data.decode()
    except (OSError, ValueError) as error:
        raise SettingError(f"cannot read {path}: {error}") from error
    parse_recipes(text, str(path))
    return data


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if (folder / name).is_symlink() or not (folder / name).is_file():  # what was put in its place
                (folder / name).unlink(missing_ok=True)
            write_atomic(folder / name, [data])
        except OSError as error:
            raise StoreError(f"cannot write {folder / name}: {error.strerror or error}; make room") from error
