"""Changed lines: how many a change adds and removes, read no further than a limit needs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.patterns.fixes import ChangedFile
from pytest_tfgrpo.patterns.git_contents import ContentQueue

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.git_objects import GitObjects

FILE_MAX = 1_000_000
"""Bytes of a source file that is read."""
CHANGE_MAX = 4_000_000
KEPT = 32_000_000
"""Bytes of files that are kept: what one change made is what the next one began with."""
SMALL = 40_000
"""Bytes up to which counting all lines costs less than finding those that differ."""
TOO_MANY = 1 << 30


Content: TypeAlias = bytes | int | None
"""Of a file: None where it is missing, its size where it is too large."""


@dataclass(kw_only=True, slots=True)
class _Asked:
    """Changes whose files git is unpacking."""

    changes: Sequence[Sequence[ChangedFile]]
    found: dict[str, Content]
    wanted: Sequence[str]
    """Those that git was asked for."""
    shared: Sequence[str]
    """Those that git was asked for with the changes before these."""
    before: dict[str, Content]
    """What those found."""


class LineCounts:
    """Counts of changed lines, over the objects of one repository: asked for first, taken later, in order."""

    def __init__(self, objects: GitObjects) -> None:
        self._objects = objects
        self._queue = ContentQueue(objects.ask, FILE_MAX)
        self._asked: deque[_Asked] = deque()
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    def ask(self, changes: Sequence[Sequence[ChangedFile]]) -> None:
        """Ask for the lines of some changes; git unpacks their files meanwhile."""
        ids = dict.fromkeys(one for files in changes for f in files for one in (f.old_id, f.new_id) if one)
        last = self._asked[-1] if self._asked else None
        under_way = set(() if last is None else last.wanted)
        new = [one for one in ids if one not in self._kept and one not in under_way]
        found: dict[str, Content] = {one: self._kept[one] for one in ids if one in self._kept}
        found |= dict(zip(new, self._objects.sizes(new), strict=True))
        large = {one for files in changes for one in _too_large(files, found)}
        wanted = [one for one in new if isinstance(found[one], int) and one not in large]
        self._queue.want(wanted)
        shared = [one for one in ids if one in under_way and one not in found]
        before = {} if last is None else last.found
        self._asked.append(_Asked(changes=changes, found=found, wanted=wanted, shared=shared, before=before))

    def take(self, limit: int) -> list[int | str]:
        """Return the lines of each change of those asked for first: exact above `limit`.

        A text says which file cannot be read. Up to `limit` they may be
        fewer. Files of over a million bytes, and of CHANGE_MAX together, are too large in any case.
        """
        asked = self._asked.popleft()
        found = asked.found
        for one in asked.wanted:
            content = found[one] = self._queue.take()
            if content is not None:
                self._kept[one] = content
                self._bytes += len(content)
        found |= {one: asked.before[one] for one in asked.shared}
        while self._bytes > KEPT:
            self._bytes -= len(self._kept.pop(next(iter(self._kept))))
        return [_lines(files, found, limit) for files in asked.changes]


def _too_large(files: Sequence[ChangedFile], found: Mapping[str, Content]) -> Iterator[str]:
    """Yield the files of a change that are not read."""
    sizes = {
        one: size for f in files for one in (f.old_id, f.new_id) if isinstance(size := found.get(one), int)
    }
    if sum(sizes.values()) > CHANGE_MAX:
        yield from sizes
    else:
        yield from (one for one, size in sizes.items() if size > FILE_MAX)


def _lines(files: Sequence[ChangedFile], contents: Mapping[str, Content], limit: int) -> int | str:
    pairs: list[tuple[bytes, bytes]] = []
    for file in files:
        before = contents[file.old_id] if file.old_id else b""
        after = contents[file.new_id] if file.new_id else b""
        if before is None or after is None:
            return f"the object {file.old_id if before is None else file.new_id} of a changed file is missing"
        if isinstance(before, int) or isinstance(after, int):
            return TOO_MANY
        if before != after and b"\0" not in before[:8000] and b"\0" not in after[:8000]:
            pairs.append((before, after))
    return lines_of_pairs(pairs, limit)


def lines_of_pairs(pairs: Sequence[tuple[bytes, bytes]], limit: int) -> int:
    """Return how many lines pairs of texts differ by, moved ones not counted.

    Where that is more than `limit`, it is exact; else it may be fewer.
    """
    if sum([len(a) + len(b) for a, b in pairs]) <= SMALL and (most := _all(pairs)) <= limit:
        return most
    pairs = [_middle(a, b) for a, b in pairs]
    if (most := _all(pairs)) <= limit:
        return most
    rows = [(_rows(a), _rows(b)) for a, b in pairs]
    most = sum([len(a) + len(b) - 2 * len(set(a).intersection(b)) for a, b in rows])
    return most if most <= limit else sum([_differing(a, b) for a, b in rows])


def _all(pairs: Sequence[tuple[bytes, bytes]]) -> int:
    return sum([_count(a) + _count(b) for a, b in pairs])


def _middle(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Return both texts without the lines with which both begin and end."""
    start = _common(before, after)
    start = before.rfind(b"\n", 0, start) + 1
    before, after = before[start:], after[start:]
    end = _common_end(before, after)
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


def _common_end(a: bytes, b: bytes) -> int:
    """Return how many bytes two texts have in common at their end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _count(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _rows(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _differing(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    a, b = Counter(before), Counter(after)
    return (a - b).total() + (b - a).total()
