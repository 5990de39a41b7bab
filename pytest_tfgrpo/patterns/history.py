"""History: the changes of a range of commits, newest first, each against its first parent."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.patterns.fixes import HistoryChange
from pytest_tfgrpo.patterns.git_compare import TreeComparison
from pytest_tfgrpo.patterns.git_process import CHUNK

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.git_objects import GitObjects

COMMIT_MAX = 1_000_000
"""Bytes of a commit that is read."""
LAST_SECOND = 253_402_300_799
"""The end of the year 9999: later dates are none."""
_TIME = re.compile(rb"> (\d{1,12}) [+-]\d{4}$")
_ENCODINGS = re.compile(
    r"iso-?8859-\d{1,2}|latin-?1|(?:windows|cp)-?\d{3,4}|koi8-[ru]|euc-(?:jp|kr)|shift_jis|gb\w+"
)


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


class _Step(NamedTuple):
    commit: _Commit
    base_tree: str
    """"" where there is none, or it cannot be read."""


def range_of(objects: GitObjects, text: str) -> CommitRange:
    """Return the commits that ``A..B`` or ``B`` names; raises SettingError."""
    first, dots, last = text.partition("..")
    if last.startswith("."):
        raise SettingError(f"the range {text!r} has three dots; write A..B: what B has and A has not")
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
    comparison = TreeComparison(objects)
    under_way: deque[list[_Step]] = deque()
    error = None
    while error is None:
        ids, error = _next_ids(walk)
        under_way.append(_steps(objects, ids))
        comparison.send([(step.base_tree, step.commit.tree) for step in under_way[-1] if step.base_tree])
        if len(under_way) > 1:
            yield from _with_files(comparison, under_way.popleft())
    for last in under_way:
        yield from _with_files(comparison, last)
    if isinstance(error, SnapshotError):
        raise error


def _next_ids(walk: Iterator[str]) -> tuple[list[str], Exception | None]:
    """Return the next commits, and why there are no more of them."""
    ids: list[str] = []
    try:
        while len(ids) < CHUNK:
            ids.append(next(walk))
    except (StopIteration, SnapshotError) as error:
        return ids, error
    return ids, None


def _commit(one: str, content: bytes | None) -> _Commit:
    if content is None:
        return _Commit(one, "", "", 0, "")
    header, _, message = content.partition(b"\n\n")
    tree = parent = encoding = ""
    committed_at = 0
    for line in header.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree":
            tree = tree or value.decode("ascii", "replace")
        elif key == b"parent":
            parent = parent or value.decode("ascii", "replace")
        elif key == b"committer" and (found := _TIME.search(line)):
            committed_at = min(int(found[1]), LAST_SECOND)
        elif key == b"encoding":
            encoding = value.decode("ascii", "replace").lower()
    return _Commit(one, tree, parent, committed_at, _text(message, encoding))


def _text(message: bytes, encoding: str) -> str:
    if _ENCODINGS.fullmatch(encoding):  # only these: some of Python's codecs are slow or no texts
        try:
            return message.decode(encoding, "replace")
        except LookupError:
            pass
    return message.decode("utf-8", "replace")


def _steps(objects: GitObjects, ids: Sequence[str]) -> list[_Step]:
    contents = objects.contents(ids, COMMIT_MAX)
    commits = [_commit(one, content) for one, content in zip(ids, contents, strict=True)]
    trees = {commit.id: commit.tree for commit in commits}
    unknown = [commit.parent for commit in commits if commit.parent and commit.parent not in trees]
    trees |= {one: tree or "" for one, tree in zip(unknown, objects.trees_of(unknown), strict=True)}
    return [_Step(commit, trees.get(commit.parent, "") if commit.tree else "") for commit in commits]


def _with_files(comparison: TreeComparison, steps: Sequence[_Step]) -> Iterator[HistoryChange]:
    differences = iter(comparison.receive())
    for commit, base_tree in steps:
        files, missing = (next(differences), "") if base_tree else ((), _missing(commit))
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
            missing=missing,
        )


def _missing(commit: _Commit) -> str:
    """Return what is missing of a change that has no tree before it; "" for the first commit."""
    if not commit.tree:
        return f"commit {commit.id}"
    return commit.parent and f"its parent {commit.parent}"
