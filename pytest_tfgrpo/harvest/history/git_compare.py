"""Comparisons of trees: which files differ, by ``diff-tree``, many pairs in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.harvest.fixes import ChangedFile, FileStatus
from pytest_tfgrpo.harvest.history.git_answers import GitAnswers

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects

DIFF = ("diff-tree", "--stdin", "-r", "--raw", "-z", "--no-renames", "--no-abbrev")
_STATUS: dict[str, FileStatus] = {"A": "added", "D": "deleted"}

TreePair: TypeAlias = tuple[str, str]
"""Ids of the tree before and after."""
TreeDifference: TypeAlias = tuple[ChangedFile, ...] | None
"""None: a tree is missing or damaged."""


class TreeComparison:
    """Pairs of trees sent in chunks, and what differs in each; the process works while its reader does."""

    def __init__(self, objects: GitObjects) -> None:
        self._objects = objects
        self._under_way: deque[tuple[Sequence[TreePair], GitAnswers]] = deque()

    def send(self, pairs: Sequence[TreePair]) -> None:
        """Have the pairs compared."""
        self._under_way.append((pairs, self._ask(pairs)))

    def receive(self) -> list[TreeDifference]:
        """Return what differs in each pair of the chunk that was sent first."""
        pairs, answers = self._under_way.popleft()
        text = answers.output.read()
        if not answers.end(complete=True):
            return _differences(text, pairs)
        return self._one_by_one(pairs)

    def _one_by_one(self, pairs: Sequence[TreePair]) -> list[TreeDifference]:
        """Compare pairs of which one is damaged so that git gives up."""
        sizes = iter(self._objects.sizes([tree for pair in pairs for tree in pair]))
        found: list[TreeDifference] = []
        for pair in pairs:
            before, after = next(sizes), next(sizes)
            whole = before is not None and after is not None
            found.append(self._difference(pair) if whole else None)
        return found

    def _difference(self, pair: TreePair) -> TreeDifference:
        answers = self._ask([pair])
        text = answers.output.read()
        return None if answers.end(complete=True) else _differences(text, [pair])[0]

    def _ask(self, pairs: Sequence[TreePair]) -> GitAnswers:
        return self._objects.ask(DIFF, [f"{a} {b}" for a, b in pairs])


def _differences(text: bytes, pairs: Sequence[TreePair]) -> list[TreeDifference]:
    """Return what differs in each pair, of which git passes over those with no tree."""
    found: list[list[ChangedFile] | None] = [None] * len(pairs)
    heads = [f"{a} {b}".encode() for a, b in pairs]
    at = -1
    fields = text.split(b"\0")
    for n in range(0, len(fields), 2):
        entry = fields[n]
        if entry[:1] != b":":
            *before, entry = entry.split(b"\n")
            for head in before:
                at = heads.index(head, at + 1)
                found[at] = []
        if entry:
            files = found[at]
            assert files is not None
            files.append(_changed_file(entry, fields[n + 1]))
    return [None if files is None else tuple(files) for files in found]


def _changed_file(entry: bytes, path: bytes) -> ChangedFile:
    old_mode, new_mode, old_id, new_id, status = entry.decode("ascii").split(" ")
    return ChangedFile(
        path=path.decode("utf-8", "surrogateescape"),
        status=_STATUS.get(status, "modified"),
        old_id="" if status == "A" else old_id,
        new_id="" if status == "D" else new_id,
        old_mode=old_mode[1:],
        new_mode=new_mode,
    )
