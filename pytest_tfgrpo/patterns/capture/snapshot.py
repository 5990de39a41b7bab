"""A snapshot of finished work: tree, difference and archive, screened before the repository gets any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.harvest.history.changes import committed_at
from pytest_tfgrpo.harvest.history.git_compare import TreeComparison
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.tree_files import tree_files
from pytest_tfgrpo.patterns.capture.git_settings import read_git_settings
from pytest_tfgrpo.patterns.capture.git_writer import GitWriter, object_id, open_writer
from pytest_tfgrpo.patterns.capture.screen import screen
from pytest_tfgrpo.patterns.capture.working_tree import write_working_tree
from pytest_tfgrpo.patterns.jobs.manifest import REFS, WorkSnapshot
from pytest_tfgrpo.sandbox.archives import ArchiveProblem, pack

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.fixes import ChangedFile
    from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace

DIFF = (
    *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""Attributes of files do not count, as there is no working tree: the same trees, the same text."""

FAST = 1
"""Level of zlib: somebody waits, and the archive goes with its job."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenSnapshot:
    """A snapshot whose objects are still in quarantine."""

    work: WorkSnapshot
    files: tuple[str, ...]
    """Changed paths, sorted."""
    diff: bytes
    tarball: bytes
    git: GitWriter

    def publish(self) -> None:
        """Let the repository have the objects and the reference; raises SnapshotError."""
        self.git.publish(self.work.commit, self.work.ref)

    def withdraw(self) -> None:
        """Delete the reference, where it was made; raises SnapshotError."""
        self.git.drop(self.work.ref)


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeTree:
    """A tree that is in no working tree and no commit yet."""

    base: str
    """The commit that it is compared with."""
    write: Callable[[GitWriter], str]
    """Writes it into the quarantine and returns its id; raises SnapshotError."""


class _Ends:
    """Commit and tree before the work."""

    def __init__(self, git: GitWriter, name: str) -> None:
        self.commit = object_id(git.run("rev-parse", "--verify", f"{name}^{{commit}}"))
        self.tree = object_id(git.run("rev-parse", "--verify", f"{self.commit}^{{tree}}"))


@contextmanager
def take_snapshot(
    place: RepositoryPlace,
    name: str,
    at: int,
    environ: Mapping[str, str],
    *,
    merge: str | None = None,
    made: MadeTree | None = None,
    leave_out: Path | None = None,
) -> Iterator[TakenSnapshot | None]:
    """Take a snapshot of the working tree, of what the commit `merge` brought, or of a tree that is `made`.

    None where nothing changed. `name` is the job's, `at` the time in seconds since 1970; what a commit
    brought has its own.

    Raises SettingError with advice, RefusedChange on secrets and large files, SnapshotError, OSError.
    """
    settings = read_git_settings(place, environ)
    with open_writer(place, settings.kept) as git:
        if made is not None:
            base, tree = _Ends(git, made.base), made.write(git)
        elif merge is None:
            base, tree = _head(git), write_working_tree(git, settings, leave_out)
        else:
            base, tree, at = _ends(git, merge)
        yield None if base.tree == tree else _taken(git, base, tree, name, at)


def _ends(git: GitWriter, merge: str) -> tuple[_Ends, str, int]:
    """Return what was there before a commit, its tree, and when it was made: packages are as of then."""
    with GitObjects(git.place.root) as objects:
        commit = objects.resolve(merge)
        try:
            parent = objects.resolve(f"{commit}^1")
        except SettingError:
            hint = "; `git fetch --unshallow` completes the clone" if git.place.is_shallow else ""
            raise SettingError(f"the commit {merge!r} has no parent to compare it with{hint}") from None
        return _Ends(git, parent), _Ends(git, commit).tree, committed_at(objects, commit)


def _head(git: GitWriter) -> _Ends:
    try:
        name = object_id(git.run("rev-parse", "--verify", "HEAD"))
    except SnapshotError:
        raise SettingError(
            f"there is no commit yet in {str(git.place.root)!r}; commit what was there before the work"
        ) from None
    try:
        return _Ends(git, name)
    except SnapshotError:
        raise SnapshotError(
            f"the commit {name} of HEAD is missing or damaged; fetch it, or see what `git fsck` says"
        ) from None


def _taken(git: GitWriter, base: _Ends, tree: str, name: str, at: int) -> TakenSnapshot:
    with GitObjects(git.folder) as objects:
        files = changed_files(objects, base.tree, tree)
        screen(objects, files)
        diff, tarball = write_diff(git, base.tree, tree), pack_tree(objects, tree)
    work = WorkSnapshot(
        ref=REFS + name,
        commit=git.commit(tree, base.commit, f"Learning snapshot {name}\n", at),
        base=base.commit,
        tree=tree,
        base_tree=base.tree,
        tarball_sha256=stamp_bytes(tarball),
        diff_sha256=stamp_bytes(diff),
    )
    paths = tuple(sorted(one.path for one in files))
    return TakenSnapshot(work=work, files=paths, diff=diff, tarball=tarball, git=git)


def changed_files(objects: GitObjects, base: str, tree: str) -> tuple[ChangedFile, ...]:
    """Return the files in which two trees differ; raises SnapshotError."""
    comparison = TreeComparison(objects)
    comparison.send([(base, tree)])
    files = comparison.receive()[0]
    if files is None:
        raise SnapshotError(f"a folder of tree {base} or {tree} is missing or damaged; fetch it")
    return files


def write_diff(git: GitWriter, base: str, tree: str) -> bytes:
    """Return the difference of two trees, the same text each time; raises SnapshotError."""
    return git.run(*DIFF, base, tree)


def pack_tree(objects: GitObjects, tree: str) -> bytes:
    """Return the archive of a tree, the same bytes each time; raises SnapshotError."""
    try:
        return pack(tree_files(objects, tree), FAST)
    except ArchiveProblem as problem:
        raise SnapshotError(f"no archive can hold the tree {tree}: {problem}") from None
