"""Changed lines: how many a change adds to its files and removes from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.harvest.fixes import ChangedFile

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects

FILE_MAX = 1_000_000
"""Bytes of a source file that is read."""
CHANGE_MAX = 4_000_000
"""Bytes of all files of a change that are read."""
BINARY = 8000
"""Bytes at the start of a file among which a NUL says that it is no text."""
TOO_MANY = 1 << 30


def changed_lines(objects: GitObjects, files: Sequence[ChangedFile]) -> int | str:
    """Return how many lines are added and removed, moved ones not counted; binary files have none.

    TOO_MANY where the files are too large to be read; a text says which object is missing.
    """
    ids = list(dict.fromkeys(one for file in files for one in (file.old_id, file.new_id) if one))
    sizes = dict(zip(ids, objects.sizes(ids), strict=True))
    if lost := [one for one, size in sizes.items() if size is None]:
        return f"the object {lost[0]} of a changed file is missing"
    if _too_large(files, sizes):
        files = _texts(objects, files)
        if _too_large(files, sizes):
            return TOO_MANY
    ids = list(dict.fromkeys(one for file in files for one in (file.old_id, file.new_id) if one))
    contents = dict(zip(ids, objects.contents(ids, FILE_MAX), strict=True))
    total = 0
    for file in files:
        before = contents[file.old_id] if file.old_id else b""
        after = contents[file.new_id] if file.new_id else b""
        if before is None or after is None:
            return f"the object {file.old_id if before is None else file.new_id} of a changed file is damaged"
        if not (_is_binary(before) or _is_binary(after)):
            total += differing_lines(before, after)
    return total


def _too_large(files: Sequence[ChangedFile], sizes: Mapping[str, int | None]) -> bool:
    found = [sizes[one] or 0 for file in files for one in (file.old_id, file.new_id) if one]
    return sum(found) > CHANGE_MAX or any(size > FILE_MAX for size in found)


def _texts(objects: GitObjects, files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Return the files that are text before and after."""
    ids = list(dict.fromkeys(one for file in files for one in (file.old_id, file.new_id) if one))
    starts = zip(ids, objects.starts(ids, BINARY), strict=True)
    binary = {one for one, start in starts if start is not None and _is_binary(start)}
    return [file for file in files if not {file.old_id, file.new_id} & binary]


def _is_binary(content: bytes) -> bool:
    return b"\0" in content[:BINARY]


def differing_lines(before: bytes, after: bytes) -> int:
    """Return how many lines one text has and the other has not, whatever their order."""
    a, b = Counter(before.splitlines()), Counter(after.splitlines())
    return (a - b).total() + (b - a).total()
