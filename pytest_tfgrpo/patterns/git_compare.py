"""Comparisons of trees: which files differ, by ``diff-tree``, many pairs in one process."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.patterns.fixes import ChangedFile, FileStatus

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.git_objects import GitObjects

DIFF = ("diff-tree", "--stdin", "-r", "--raw", "-z", "--no-renames", "--no-abbrev")
_STATUS: dict[str, FileStatus] = {"A": "added", "D": "deleted"}

TreePair: TypeAlias = tuple[str, str]
"""Ids of the tree before and after."""
TreeDifference: TypeAlias = tuple[ChangedFile, ...] | None
"""None: a tree is missing or damaged."""


class TreeComparison:
    """Pairs of trees sent in chunks, and what differs in each; the process works while its reader does."""

    def __init__(self, objects: GitObjects) -> None:
        """Each chunk may have `git_process.CHUNK` pairs, and two may be under way."""
        self._objects = objects
        self._process = objects.process(*DIFF)
        self._under_way: deque[Sequence[TreePair]] = deque()
        self._end = f"end {secrets.token_hex()}\n".encode()
        """``diff-tree`` repeats a line that is no object's name, and flushes; no name of a file holds it."""

    def send(self, pairs: Sequence[TreePair]) -> None:
        """Have the pairs compared."""
        self._under_way.append(pairs)
        self._write(pairs)

    def receive(self) -> list[TreeDifference]:
        """Return what differs in each pair of the chunk that was sent first."""
        pairs = self._under_way.popleft()
        text = self._read()
        if text is not None:
            return _differences(text, pairs)
        found = self._one_by_one(pairs)
        for others in self._under_way:  # the process has ended, and took them with it
            self._write(others)
        return found

    def _one_by_one(self, pairs: Sequence[TreePair]) -> list[TreeDifference]:
        """Compare pairs of which one is damaged so that git gives up."""
        sizes = iter(self._objects.sizes([tree for pair in pairs for tree in pair]))
        found: list[TreeDifference] = []
        for pair in pairs:
            before, after = next(sizes), next(sizes)
            text = None
            if before is not None and after is not None:
                self._write([pair])
                text = self._read()
            found.append(None if text is None else _differences(text, [pair])[0])
        return found

    def _write(self, pairs: Sequence[TreePair]) -> None:
        self._process.send("".join([f"{a} {b}\n" for a, b in pairs]).encode() + self._end)

    def _read(self) -> bytes | None:
        """Return what git wrote of one chunk; None when it gave up."""
        lines: list[bytes] = []
        for line in self._process.output:
            if line.endswith(self._end):
                lines.append(line.removesuffix(self._end))
                return b"".join(lines)
            lines.append(line)
        self._process.end()
        return None


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
