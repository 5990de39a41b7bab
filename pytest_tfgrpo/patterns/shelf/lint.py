"""Lint: what is wrong with the files on a shelf and their log, each with what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.patterns.shelf.moves import (
    WRITTEN,
    ShelfDecision,
    finish,
    note,
    restamp,
    status_in_log,
    unfinished,
)
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of
from pytest_tfgrpo.patterns.shelf.promotion import gone_lines
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf, ShelfFile

FIX = "'tfgrpo patterns lint --fix --by YOU'"


def lint(shelf: Shelf, screens: PatternScreens) -> list[str]:
    """Return what is wrong, one line each; it reads and changes nothing.

    Deprecated patterns need not pass the screens: nobody loads them.
    """
    files = shelf.files()
    found = [line for file in files for line in _file_faults(shelf, file, screens)]
    found += _twice(files)
    try:
        found += _log_faults(shelf, files)
    except StoreError as error:
        found.append(str(error))
    return found


def fix(shelf: Shelf, screens: PatternScreens, decision: ShelfDecision) -> Iterator[str]:
    """Finish what was cut short, log new candidates, screen and stamp edited patterns; yield what was done.

    Raises StoreError on a broken log.
    """
    for name in finish(shelf):
        yield f"{name}: moved to where the log has it"
    known = status_in_log(shelf.log.entries())
    for pattern in shelf.patterns(PatternStatus.CANDIDATE):
        if pattern.id not in known:
            note(shelf, WRITTEN, pattern, decision)
            yield f"{pattern.name}: noted in the log"
    for file in shelf.files(PatternStatus.CANDIDATE, PatternStatus.ACTIVE):
        edited = file.pattern
        if edited is None or edited.stamp == stamp_of(edited) or edited.name != file.name:
            continue
        if not screens.refusals(edited):
            restamp(shelf, file.name, decision)
            yield f"{file.name}: screened and stamped"


def _file_faults(shelf: Shelf, file: ShelfFile, screens: PatternScreens) -> Iterator[str]:
    pattern, path = file.pattern, file.path
    if pattern is None:
        yield from file.error.split("\n")
        return
    if pattern.name != file.name:
        yield f"{path}: name: it is {pattern.name!r}; write {file.name!r}, or rename the file"
    if file.status is PatternStatus.DEPRECATED:
        return
    refused = screens.refusals(pattern)
    yield from (f"{path}: {fault.place}: {fault.message}; rewrite it" for fault in refused)
    if pattern.stamp != stamp_of(pattern) and not refused:
        yield f"{path}: stamp: the text was changed since it was screened; review it, then {FIX}"
    if file.status is PatternStatus.ACTIVE and gone_lines(shelf.root, pattern.body):
        yield f"{path}: excerpt: its files no longer have it; renew it, or deprecate the pattern"


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


def _log_faults(shelf: Shelf, files: list[ShelfFile]) -> Iterator[str]:
    entries = shelf.log.entries()
    known = status_in_log(entries)
    for file, status in unfinished(shelf):
        yield (
            f"{file.path}: the log has it in {status.value}, the file not: a move was cut short,"
            f" or made without 'tfgrpo patterns'; {FIX} puts it there"
        )
    patterns = [file.pattern for file in files if file.pattern is not None]
    for file in files:
        if file.pattern is not None and file.pattern.id not in known:
            yield _unlogged(file)
    there = {pattern.id for pattern in patterns}
    names = {entry.get("id"): entry.get("name") for entry in entries}
    readable = all(file.pattern is not None for file in files)
    for id_ in sorted(known.keys() - there) if readable else ():
        yield f"{shelf.log.path}: {names[id_]!r} has no file any more; put it back from git, and deprecate it"


def _unlogged(file: ShelfFile) -> str:
    where = f"{file.path}: the log has no entry of it"
    if file.status is PatternStatus.CANDIDATE:
        return f"{where}; {FIX} adds one"
    return f"{where}: nobody decided that; put it into candidates and promote or reject it there"
