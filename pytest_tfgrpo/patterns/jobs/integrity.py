"""Whether a snapshot is still what was approved: its reference, objects and files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.files import LARGEST, read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import few, line
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.harvest.history.git_compare import TreeComparison
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, WorkSnapshot

DIFF, TARBALL, RECIPE = "diff.patch", "snapshot.tar.gz", "manual.harvest.toml"
"""In the folder of a job: what was changed, the tree after it, and what a person signed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSnapshot:
    """A snapshot and its files."""

    work: WorkSnapshot
    files: tuple[str, ...]
    """Changed paths, sorted."""
    diff: bytes
    tarball: bytes


class SnapshotGit(Protocol):
    """What is done with the snapshots of a repository that its objects do not say; raises SnapshotError."""

    def applied(self, repository: Path, base_tree: str, diff: bytes, /) -> str:
        """Return the id of the tree that a diff makes of another; nothing is written to the repository."""
        ...

    def status(self, repository: Path, /) -> str:
        """Return what git says of the working tree."""
        ...

    def rebuild(self, snapshot: WorkSnapshot, repository: Path, /) -> MadeSnapshot:
        """Return the files of a snapshot, made again from its commit, whose reference is there again."""
        ...

    def retake(self, manifest: JobManifest, out: Path, /) -> MadeSnapshot:
        """Take the snapshot of a job that has none from the working tree as it is now, without `out`.

        Raises SettingError where that cannot be, also SnapshotError and OSError.
        """
        ...

    def drop(self, repository: Path, ref: str, /) -> None:
        """Delete the reference of a snapshot, if it is there."""
        ...


def broken(manifest: JobManifest, folder: Path, git: SnapshotGit) -> list[str]:
    """Return what does not hold of a job's snapshot and signed file; empty: it is what was approved."""
    snapshot = manifest.snapshot
    if snapshot is None:
        return ["there is no snapshot"]
    try:
        found = list(_broken_objects(manifest, snapshot))
        found += _broken_files(manifest, snapshot, folder)
        return found or list(_broken_sum(manifest, snapshot, folder, git))
    except (SettingError, SnapshotError, OSError) as error:
        return [line(str(error), 500)]


def _broken_objects(manifest: JobManifest, snapshot: WorkSnapshot) -> Iterator[str]:
    with GitObjects(Path(manifest.captured.repository)) as objects:
        yield from _broken_commit(objects, snapshot)
        comparison = TreeComparison(objects)
        comparison.send([(snapshot.base_tree, snapshot.tree)])
        [files] = comparison.receive()
        if files is None:
            yield "objects of its trees are missing or damaged"
            return
        changed = {file.path for file in files}
        if odd := sorted(changed ^ set(manifest.captured.files)):
            yield f"its trees do not differ in the captured files alone: {few(odd, 3)}"


def _broken_commit(objects: GitObjects, snapshot: WorkSnapshot) -> Iterator[str]:
    """Yield what does not hold of a snapshot's reference and commit."""
    try:
        at = objects.resolve(snapshot.ref)
        if at != snapshot.commit:
            yield f"its reference leads to {at[:12]}, not to {snapshot.commit[:12]}"
    except SettingError:
        yield "its reference is gone"
    if (trees := objects.trees_of([snapshot.commit, snapshot.base])) != [snapshot.tree, snapshot.base_tree]:
        names = zip((snapshot.commit, snapshot.base), trees, strict=True)
        lost = [commit[:12] for commit, tree in names if tree is None]
        yield f"commits are missing: {', '.join(lost)}" if lost else "a commit has another tree"
        return
    if objects.resolve(f"{snapshot.commit}^1") != snapshot.base:
        yield f"the commit {snapshot.commit[:12]} does not follow from {snapshot.base[:12]}"


def _broken_files(manifest: JobManifest, snapshot: WorkSnapshot, folder: Path) -> Iterator[str]:
    signed = [how.scenario_sha256 for how in manifest.requeues if how.scenario_sha256]
    wanted = {TARBALL: snapshot.tarball_sha256, DIFF: snapshot.diff_sha256}
    for name, digest in {**wanted, **({RECIPE: signed[-1]} if signed else {})}.items():
        try:
            found = stamp_bytes(read_plain(folder / name, 4 * LARGEST))
        except FileNotFoundError:
            yield f"{name} is gone"
            continue
        if found != digest:
            yield f"{name} has changed: its sha256 is {found[:12]}..., not {digest[:12]}..."


def _broken_sum(
    manifest: JobManifest, snapshot: WorkSnapshot, folder: Path, git: SnapshotGit
) -> Iterator[str]:
    """Yield whether base and diff together are not the tree (decision 42)."""
    diff = read_plain(folder / DIFF)
    tree = git.applied(Path(manifest.captured.repository), snapshot.base_tree, diff)
    if tree != snapshot.tree:
        yield f"the diff makes the tree {tree[:12]} of its base, not {snapshot.tree[:12]}"
