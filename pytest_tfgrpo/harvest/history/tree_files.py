"""Trees of commits as entries of archives: all files, or those that a fix changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.sandbox.archives import (
    MAX_BYTES,
    MAX_FILES,
    ArchiveEntry,
    ArchiveProblem,
    check_link,
    check_member,
)

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects, TreeEntry

T = TypeVar("T")

LINK, SUBMODULE, EXECUTABLE = "120000", "160000", "100755"
FILE_MAX = 100_000_000
"""Bytes of one file; larger ones refuse the whole tree."""
LINK_MAX = 4096
NAMED = 100
"""Most paths that are named to git, so that it looks for these alone."""


def tree_files(
    objects: GitObjects,
    tree: str,
    *,
    only: Collection[str] | None = None,
    leave_out: Callable[[str], bool] | None = None,
) -> Iterator[ArchiveEntry]:
    """Yield the files of a tree or commit as entries of an archive, sorted by git; submodules are left out.

    `only` names the paths to take, `leave_out` returns whether a path stays out. Raises SnapshotError where
    an object is missing, the tree is too large, or a name or link leads out of it.
    """
    named = () if only is None or len(only) > NAMED else tuple(only)
    taken = [
        entry
        for entry in objects.entries(tree, *named)
        if entry.mode != SUBMODULE
        and (only is None or entry.path in only)
        and not (leave_out and leave_out(entry.path))
    ]
    _refuse(taken, tree)
    contents = objects.contents([entry.id for entry in taken], FILE_MAX)
    for entry, content in zip(taken, contents, strict=True):
        yield _archived(entry, _present(content, entry, tree))


def read_file(objects: GitObjects, tree: str, path: str, most: int = 1_000_000) -> bytes | None:
    """Return the content of one file of a tree or commit; None if it is absent or has over `most` bytes.

    Raises SnapshotError where an object is missing.
    """
    if any(part in ("", ".", "..") for part in path.split("/")):
        return None
    entry = next((e for e in objects.entries(tree, path) if e.path == path and e.mode != SUBMODULE), None)
    if entry is None or _present(entry.size, entry, tree) > most:
        return None
    return _present(next(objects.contents([entry.id], most)), entry, tree)


def _present(found: T | None, entry: TreeEntry, tree: str) -> T:
    if found is None:
        raise SnapshotError(
            f"the object {entry.id} of {entry.path!r} in {tree} is missing or damaged; fetch it"
        )
    return found


def _refuse(taken: list[TreeEntry], tree: str) -> None:
    if len(taken) > MAX_FILES:
        raise SnapshotError(
            f"the tree {tree} has {len(taken)} files, more than {MAX_FILES}; leave folders out"
        )
    for entry in taken:
        if _present(entry.size, entry, tree) > FILE_MAX:
            raise SnapshotError(f"{entry.path!r} in {tree} has {entry.size} bytes; leave it out")
        try:
            check_member(entry.path)
        except ArchiveProblem as problem:
            raise SnapshotError(f"no folder can hold the tree {tree}: {problem}") from None
    if (total := sum(entry.size or 0 for entry in taken)) > MAX_BYTES:
        raise SnapshotError(
            f"the files of {tree} have {total} bytes, more than {MAX_BYTES}; leave folders out"
        )


def _archived(entry: TreeEntry, content: bytes) -> ArchiveEntry:
    if entry.mode != LINK:
        return ArchiveEntry(name=entry.path, data=content, executable=entry.mode == EXECUTABLE)
    target = content[:LINK_MAX].decode("utf-8", "surrogateescape")
    try:
        check_link(entry.path, target)
    except ArchiveProblem as problem:
        raise SnapshotError(f"{problem}; remove it, or let it lead to a file of the tree") from None
    return ArchiveEntry(name=entry.path, link=target)
