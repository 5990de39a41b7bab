"""History: the changes of a range of commits, newest first, each against its first parent."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.fixes import HistoryChange
from pytest_tfgrpo.harvest.history.git_compare import TreeComparison

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects

CHUNK = 500
"""Commits compared by one process of git, while the reader works on those before."""
MERGED = 200
"""Commits of one merge that are read, the newest."""
LAST_SECOND = 253_402_300_799
"""The end of the year 9999: later dates are none."""
_TIME = re.compile(r"> (\d{1,12}) [+-]\d{4}$")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitRange:
    """The commits that `last` reaches and `first` does not, by id."""

    first: str | None
    """None: from the beginning of the history."""
    last: str


class _Commit(NamedTuple):
    id: str
    tree: str
    parent: str
    """"" for the first commit of a history."""
    committed_at: int
    message: str
    is_merge: bool


class _Step(NamedTuple):
    commit: _Commit
    base_tree: str
    """"" where there is none, or it cannot be read."""


def range_of(objects: GitObjects, text: str) -> CommitRange:
    """Return the commits that ``A..B`` or ``B`` names; raises SettingError."""
    first, dots, last = text.partition("..")
    if last.startswith("."):
        raise SettingError(
            f"the range {text!r} has three dots; write A..B, the commits of B that A does not have"
        )
    if not dots:
        return CommitRange(first=None, last=objects.resolve(first))
    return CommitRange(first=objects.resolve(first or "HEAD"), last=objects.resolve(last or "HEAD"))


def changes(
    objects: GitObjects,
    commits: CommitRange,
    *,
    each_commit: bool = False,
    paths: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[HistoryChange]:
    """Yield the changes of a range, newest first, at most `limit`; raises SnapshotError where it breaks off.

    A merge is one change, on the first-parent line; with `each_commit`, every commit but merges is one.
    With `paths`, only changes that touch one of these files or folders.
    """
    way = ("--no-merges", "--full-history", "--topo-order") if each_commit else ("--first-parent",)
    most = () if limit is None else (f"--max-count={limit}",)
    ends = (commits.last, *(() if commits.first is None else (f"^{commits.first}",)))
    walk = objects.walk(*way, *most, *ends, "--", *paths)
    comparison, under_way = TreeComparison(objects), deque[list[_Step]]()
    read, error = _next_commits(walk)
    while read:
        more, error = ([], error) if error else _next_commits(walk)
        under_way.append(_steps(objects, read, more))
        comparison.send([(step.base_tree, step.commit.tree) for step in under_way[-1] if step.base_tree])
        read = more
        if len(under_way) > 1:
            yield from _with_files(comparison, under_way.popleft())
    for last in under_way:
        yield from _with_files(comparison, last)
    if isinstance(error, SnapshotError):
        raise error


def merged_changes(
    objects: GitObjects, merge: HistoryChange, paths: Sequence[str] = ()
) -> tuple[HistoryChange, ...]:
    """Return the commits that a merge brings but merges, newest first, each against its own parent.

    None where they cannot be read, as in a shallow clone.
    """
    commits = CommitRange(first=merge.base, last=merge.commit)
    try:
        return tuple(changes(objects, commits, each_commit=True, paths=paths, limit=MERGED))
    except SnapshotError:
        return ()


def committed_at(objects: GitObjects, commit: str) -> int:
    """Return when a commit was made, in seconds since 1970; raises SnapshotError."""
    return _commit(next(objects.walk("--max-count=1", commit))).committed_at


def _next_commits(walk: Iterator[bytes]) -> tuple[list[_Commit], Exception | None]:
    """Return the next commits, and why there are no more of them."""
    found: list[_Commit] = []
    try:
        while len(found) < CHUNK:
            found.append(_commit(next(walk)))
    except (StopIteration, SnapshotError) as error:
        return found, error
    return found, None


def _commit(record: bytes) -> _Commit:
    """Return the commit that ``rev-list --header`` writes: its message is indented, and UTF-8."""
    header, _, body = record.partition(b"\n\n")
    one, *lines = header.decode("ascii", "replace").split("\n")
    tree, parents = "", list[str]()
    committed_at = 0
    for line in lines:
        key, _, value = line.partition(" ")
        if key == "tree":
            tree = tree or value
        elif key == "parent":
            parents.append(value)
        elif key == "committer" and (found := _TIME.search(value)):
            committed_at = min(int(found[1]), LAST_SECOND)
    text = body[4:] if body.startswith(b"    ") else body
    text = text.replace(b"\n    ", b"\n").rstrip(b"\n")
    message, parent = text.decode("utf-8", "replace"), parents[0] if parents else ""
    return _Commit(one, tree, parent, committed_at, message, len(parents) > 1)


def _steps(objects: GitObjects, commits: Sequence[_Commit], later: Sequence[_Commit]) -> list[_Step]:
    """Return commits with the trees of their parents, most of which are among them or those read `later`."""
    trees = {commit.id: commit.tree for commit in (*commits, *later)}
    unknown = [commit.parent for commit in commits if commit.parent and commit.parent not in trees]
    trees |= {one: tree or "" for one, tree in zip(unknown, objects.trees_of(unknown), strict=True)}
    return [_Step(commit, trees.get(commit.parent, "")) for commit in commits]


def _with_files(comparison: TreeComparison, steps: Sequence[_Step]) -> Iterator[HistoryChange]:
    differences = iter(comparison.receive())
    for commit, base_tree in steps:
        files, missing = (next(differences), "") if base_tree else ((), "")
        if commit.parent and not base_tree:
            missing = f"its parent {commit.parent}"
        if files is None:
            missing = f"a folder of tree {commit.tree} or {base_tree}"
        yield HistoryChange(
            commit=commit.id,
            base=commit.parent,
            tree=commit.tree,
            base_tree=base_tree,
            committed_at=commit.committed_at,
            message=commit.message,
            files=files or (),
            is_merge=commit.is_merge,
            missing=missing,
        )
