"""Changed lines: how many a change adds and removes, read no further than a limit needs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.patterns.fixes import ChangedFile

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.git_objects import GitObjects

FILE_MAX = 1_000_000
"""Bytes of a source file that is read."""
KEPT = 32_000_000
"""Bytes of files that are kept: what one change made is what the next one began with."""
TOO_MANY = 1 << 30


class LineCounts:
    """Counts of changed lines, over the objects of one repository."""

    def __init__(self, objects: GitObjects) -> None:
        self._objects = objects
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def of(self, changes: Sequence[Sequence[ChangedFile]], limit: int) -> list[int | str]:
        """Return for each change its lines, exact where they are more than `limit`, else at least that many.

        A text says which file cannot be read. A file of over a million bytes is too large in any case.
        """
        contents = self._contents([one for files in changes for f in files for one in (f.old_id, f.new_id)])
        return [_lines(files, contents, limit) for files in changes]

    def _contents(self, ids: Sequence[str]) -> dict[str, bytes | int | None]:
        """Return the objects by id: None for one that is missing, its size for one that is too large."""
        found: dict[str, bytes | int | None] = {"": b""}
        for one in ids:
            if one in self._kept:
                found[one] = self._kept[one]
                self._kept.move_to_end(one)
        wanted = list(dict.fromkeys(one for one in ids if one not in found))
        sizes = self._objects.sizes(wanted)
        small = [
            one for one, size in zip(wanted, sizes, strict=True) if size is not None and size <= FILE_MAX
        ]
        found |= dict(zip(wanted, sizes, strict=True))
        for one, content in zip(small, self._objects.contents(small, FILE_MAX), strict=True):
            found[one] = content
            if content is not None:
                self._keep(one, content)
        return found

    def _keep(self, one: str, content: bytes) -> None:
        self._kept[one] = content
        self._bytes += len(content)
        while self._bytes > KEPT:
            self._bytes -= len(self._kept.popitem(last=False)[1])


def _lines(files: Sequence[ChangedFile], contents: dict[str, bytes | int | None], limit: int) -> int | str:
    pairs: list[tuple[bytes, bytes]] = []
    for file in files:
        before, after = contents[file.old_id], contents[file.new_id]
        if before is None or after is None:
            return f"the object {file.old_id if before is None else file.new_id} of a changed file is missing"
        if isinstance(before, int) or isinstance(after, int):
            return TOO_MANY
        if before != after and b"\0" not in before[:8000] and b"\0" not in after[:8000]:
            pairs.append(_middle(before, after))
    most = sum(_count(a) + _count(b) for a, b in pairs)
    return most if most <= limit else sum(_differing(a, b) for a, b in pairs)


def _middle(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Return both texts without the lines with which both begin and end."""
    start = _common(before, after)
    start = before.rfind(b"\n", 0, start) + 1
    before, after = before[start:], after[start:]
    end = _common(before[::-1], after[::-1])
    cut = before.find(b"\n", len(before) - end) + 1 if end else 0
    return (before, after) if not cut else (before[:cut], after[: len(after) - (len(before) - cut)])


def _common(a: bytes, b: bytes) -> int:
    """Return how many bytes two texts have in common at their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _count(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _differing(before: bytes, after: bytes) -> int:
    a, b = Counter(before.split(b"\n")), Counter(after.split(b"\n"))
    return (a - b).total() + (b - a).total()
