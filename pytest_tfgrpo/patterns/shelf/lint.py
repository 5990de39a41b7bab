"""Lint: what is wrong with the files on a shelf, each with what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of
from pytest_tfgrpo.patterns.shelf.shelf import Shelf, ShelfFile


def lint(shelf: Shelf) -> list[str]:
    """Return what is wrong, one line each, by file; it reads and changes nothing."""
    files = shelf.files()
    found = [line for file in files for line in (_file_faults(file) if file.pattern else [file.error])]
    found += _twice(files)
    try:
        shelf.log.entries()
    except StoreError as error:
        found.append(str(error))
    return found


def _file_faults(file: ShelfFile) -> Iterator[str]:
    pattern, path = file.pattern, file.path
    assert pattern is not None
    if pattern.name != file.name:
        yield f"{path}: name: it is {pattern.name!r}; write {file.name!r}, or rename the file"
    if pattern.status != file.status:
        yield (
            f"{path}: status: it is {pattern.status.value!r}, and the file lies in {file.status.value}; "
            "move files with 'tfgrpo patterns', which writes the log"
        )
    if file.status is not PatternStatus.DEPRECATED and pattern.stamp != stamp_of(pattern):
        yield edited(pattern, str(path))


def edited(pattern: Pattern, where: str) -> str:
    """Return what to say of a pattern that was changed since it was screened."""
    return (
        f"{where}: stamp: the text was changed since it was screened; review it, then "
        f"'tfgrpo patterns lint --fix {pattern.name} --by YOU' screens it again"
    )


def _twice(files: list[ShelfFile]) -> Iterator[str]:
    names, ids = defaultdict[str, list[ShelfFile]](list), defaultdict[str, list[ShelfFile]](list)
    for file in files:
        names[file.name].append(file)
        if file.pattern is not None:
            ids[file.pattern.id].append(file)
    for what, found in (("name", names), ("id", ids)):
        for value, same in sorted(found.items()):
            if len(same) > 1:
                places = ", ".join(str(file.path) for file in same[1:])
                yield f"{same[0].path}: {what}: {value!r} is also that of {places}; take all but one away"
