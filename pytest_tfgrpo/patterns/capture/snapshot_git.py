"""What a job's worker, and a person who puts it back, do with its snapshot: see `SnapshotGit`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.patterns.capture.git_settings import read_git_settings
from pytest_tfgrpo.patterns.capture.git_writer import GitWriter, object_id, open_writer
from pytest_tfgrpo.patterns.capture.screen import RefusedChange
from pytest_tfgrpo.patterns.capture.snapshot import (
    changed_files,
    pack_tree,
    take_snapshot,
    write_diff,
)
from pytest_tfgrpo.patterns.jobs.integrity import MadeSnapshot

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, WorkSnapshot


class RepositoryGit:
    """Snapshots as captures make them; no program of the settings runs."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Of `environ` the places of git's settings are used."""
        self._environ = environ

    def applied(self, repository: Path, base_tree: str, diff: bytes, /) -> str:
        """Return the id of the tree that a diff makes of another; raises SnapshotError."""
        with open_writer(locate(repository), {}) as git:
            git.run("read-tree", base_tree)
            git.run("apply", "--cached", "--binary", "--whitespace=nowarn", "-", given=diff)
            return object_id(git.run("write-tree"))

    def status(self, repository: Path, /) -> str:
        """Return what git says of the working tree; raises SettingError, SnapshotError."""
        place = locate(repository)
        with open_writer(place, read_git_settings(place, self._environ).kept) as git:
            git.copy_index()
            said = git.run("status", "--short", "--branch", "--ignore-submodules=dirty", in_work_tree=True)
            return said.decode("utf-8", "replace")

    def rebuild(self, snapshot: WorkSnapshot, repository: Path, /) -> MadeSnapshot:
        """Return the files of a snapshot, made again from its commit, whose reference is there again.

        Raises SnapshotError where the commit, or what it was made from, is gone.
        """
        with open_writer(locate(repository), {}) as git:
            for name, wanted in (("^{tree}", snapshot.tree), ("^1", snapshot.base)):
                found = _named(git, f"{snapshot.commit}{name}")
                if found != wanted:
                    raise SettingError(
                        f"the commit {snapshot.commit} has {found} where the job has {wanted}; its manifest "
                        "was changed, so capture the work again"
                    )
            with GitObjects(git.place.root) as objects:
                files = changed_files(objects, snapshot.base_tree, snapshot.tree)
                tarball = pack_tree(objects, snapshot.tree)
            diff = write_diff(git, snapshot.base_tree, snapshot.tree)
            git.point(snapshot.ref, snapshot.commit)
        work = replace(snapshot, tarball_sha256=stamp_bytes(tarball), diff_sha256=stamp_bytes(diff))
        paths = tuple(sorted(one.path for one in files))
        return MadeSnapshot(work=work, files=paths, diff=diff, tarball=tarball)

    def retake(self, manifest: JobManifest, out: Path, /) -> MadeSnapshot:
        """Take the snapshot of a job that has none from the working tree as it is now, without `out`.

        Raises SettingError with advice, SnapshotError, OSError.
        """
        if manifest.captured.trigger == "merge":
            raise SettingError(f"job {manifest.job_id} is of a merge; capture that again with --merge")
        if manifest.captured.improves:
            raise SettingError(f"job {manifest.job_id} is of an agent's rollout, whose files are not kept")
        place = locate(Path(manifest.captured.repository))
        try:
            with take_snapshot(
                place, manifest.job_id, int(time.time()), self._environ, leave_out=out
            ) as taken:
                if taken is None:
                    raise SettingError(
                        f"nothing has changed in {str(place.root)!r}; capture a commit with --merge"
                    )
                taken.withdraw()  # one that a requeue before this left
                taken.publish()
                return MadeSnapshot(
                    work=taken.work, files=taken.files, diff=taken.diff, tarball=taken.tarball
                )
        except RefusedChange as refused:
            raise SettingError(str(refused)) from None

    def drop(self, repository: Path, ref: str, /) -> None:
        """Delete the reference of a snapshot, if it is there; raises SettingError, SnapshotError."""
        with open_writer(locate(repository), {}) as git:
            git.drop(ref)


def _named(git: GitWriter, name: str) -> str:
    """Return the object of a name; raises SnapshotError."""
    try:
        return object_id(git.run("rev-parse", "--verify", name))
    except SnapshotError:
        raise SnapshotError(f"{name} is gone from the repository; capture the work again") from None
