"""The working tree as a tree of git: what ``git add -A`` would stage, and no more than that."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.texts.text import few, line
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.harvest.history.tree_files import SUBMODULE
from pytest_tfgrpo.patterns.capture.git_settings import GitSettings
from pytest_tfgrpo.patterns.capture.git_writer import GitWriter, object_id, open_writer
from pytest_tfgrpo.patterns.capture.screen import LARGEST, RefusedChange, too_large

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace

UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "sequencer": "a cherry-pick or revert of several commits",
}
"""What lies in the folder of git while the working tree is nobody's finished work."""
STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=dirty",
)
_FIELDS = {b"1": 8, b"u": 10, b"?": 1}
"""Fields before the path, by kind of entry."""


class _Changes(NamedTuple):
    """Paths that differ from the index, as bytes."""

    present: list[bytes]
    gone: list[bytes]


def require_finished(place: RepositoryPlace) -> None:
    """Raise SettingError where there is no working tree, or one amid a merge, rebase or the like."""
    if place.root == place.common:
        raise SettingError(
            f"{str(place.root)!r} is a bare repository, without a working tree; capture a commit with --merge"
        )
    for name, what in UNDER_WAY.items():
        if (place.git_dir / name).exists():
            raise SettingError(
                f"{what} is under way in {str(place.root)!r}; finish or abort it, then capture the work"
            )


def write_working_tree(git: GitWriter, settings: GitSettings, leave_out: Path | None = None) -> str:
    """Write the working tree into the quarantine and return the tree's id; no program of its settings runs.

    Untracked files below `leave_out` stay out. Raises SettingError with advice where it is not whole or needs
    a filter, RefusedChange on a changed file that is too large, and SnapshotError.
    """
    require_finished(git.place)
    git.copy_index()
    changes = _changes(git, leave_out)
    _refuse_dirty_submodules(git, settings)
    _refuse_filtered(git, changes.present, settings.filters)
    for path in changes.present:
        _refuse_large(git.place.root, path)
    if changes.gone:
        _update(git, "--force-remove", paths=changes.gone)
    if changes.present:
        _update(git, "--add", "--replace", paths=changes.present)
    return object_id(git.run("write-tree"))


def _changes(git: GitWriter, leave_out: Path | None) -> _Changes:
    """Return what differs from the index; raises SettingError on conflicts and on submodules that moved."""
    found = _Changes([], [])
    unmerged, moved = list[bytes](), list[bytes]()
    below = _below(git.place.root, leave_out)
    for record in git.run(*STATUS, in_work_tree=True).split(b"\0"):
        kind = record[:1]
        if kind not in _FIELDS:
            continue
        *fields, path = record.split(b" ", _FIELDS[kind])
        if kind == b"u":
            unmerged.append(path)
        elif kind == b"?":
            if not path.endswith(b"/") and not (
                below and path.startswith(below)
            ):  # else a repository of its own
                found.present.append(path)
        elif fields[2][1:2] == b"C":
            moved.append(path)
        elif fields[1][1:2] == b"D":
            found.gone.append(path)
        elif fields[1][1:2] != b".":
            found.present.append(path)
    if unmerged:
        raise SettingError(f"{_named(unmerged)} has conflicts; resolve them, then capture the work")
    if moved:
        raise _submodule(moved)
    return found


def _below(root: Path, folder: Path | None) -> bytes:
    """Return how paths of files in a folder of the working tree begin; empty for one that is not in it."""
    if folder is None or not folder.resolve().is_relative_to(root) or folder.resolve() == root:
        return b""
    return str(folder.resolve().relative_to(root)).encode("utf-8", "surrogateescape") + b"/"


def _update(git: GitWriter, *options: str, paths: Iterable[bytes]) -> None:
    given = b"".join(path + b"\0" for path in paths)
    git.run("update-index", *options, "-z", "--stdin", given=given, in_work_tree=True)


def _refuse_large(root: Path, path: bytes) -> None:
    name = path.decode("utf-8", "surrogateescape")
    try:
        status = (root / name).lstat()
    except OSError:  # it is gone, or cannot be read: git says so
        return
    if status.st_size > LARGEST:
        raise RefusedChange(too_large(name, status.st_size))


def _refuse_filtered(git: GitWriter, paths: Collection[bytes], filters: Collection[str]) -> None:
    """Raise SettingError on a changed file that git would send through a program."""
    if not filters or not paths:
        return
    given = b"".join(path + b"\0" for path in paths)
    answers = git.run("check-attr", "-z", "--stdin", "filter", given=given, in_work_tree=True).split(b"\0")
    for path, name in zip(answers[::3], answers[2::3], strict=False):
        if (used := name.decode("utf-8", "replace")) in filters:
            raise SettingError(
                f"{_named([path])} goes through the filter {used!r}, a program that a snapshot does not run; "
                "commit the work, then capture the commit with --merge HEAD"
            )


def _refuse_dirty_submodules(git: GitWriter, settings: GitSettings) -> None:
    dirty = []
    for record in git.run("ls-files", "-s", "-z").split(b"\0"):
        if record.startswith(SUBMODULE.encode()):
            path = record.partition(b"\t")[2]
            folder = git.place.root / path.decode("utf-8", "surrogateescape")
            if (folder / ".git").exists() and not _is_clean(locate(folder), settings):
                dirty.append(path)
    if dirty:
        raise _submodule(dirty)


def _is_clean(place: RepositoryPlace, settings: GitSettings) -> bool:
    """Return whether the working tree of a submodule is what its HEAD has."""
    with open_writer(place, settings.kept) as git:
        tree = write_working_tree(git, settings)
        return tree == object_id(git.run("rev-parse", "HEAD^{tree}"))


def _submodule(paths: list[bytes]) -> SettingError:
    return SettingError(
        f"the submodule {_named(paths)} has changes, or another commit than HEAD names; commit or undo them, "
        "then capture the work"
    )


def _named(paths: list[bytes]) -> str:
    return few([repr(line(path.decode("utf-8", "replace"), 200)) for path in paths])
