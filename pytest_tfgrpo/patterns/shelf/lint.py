"""Lint: what is wrong with the files on a shelf and their log, each with what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.errors import PatternError, StoreError
from pytest_tfgrpo.patterns.shelf.moves import (
    WRITTEN,
    ShelfDecision,
    finish,
    note,
    restamp,
    stamps_in_log,
    status_in_log,
    unfinished,
)
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
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
    found = [line for file in files for line in _file_faults(file, screens)]
    found += _gone(shelf, files)
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
    known = status_in_log(shelf.entries())
    for pattern in shelf.patterns(PatternStatus.CANDIDATE):
        if pattern.id not in known:
            note(shelf, WRITTEN, pattern, decision)
            yield f"{pattern.name}: noted in the log"
    stamps = stamps_in_log(shelf.entries())
    for edited in shelf.patterns(PatternStatus.CANDIDATE, PatternStatus.ACTIVE):
        if not _is_as_screened(edited, stamps) and not screens.refusals(edited):
            restamp(shelf, edited.name, decision)
            yield f"{edited.name}: screened and stamped"


def require_fit(shelf: Shelf, screens: PatternScreens) -> None:
    """Raise PatternError unless agents may read all that is active: as decided and screened.

    An excerpt that has left the code is for lint alone. Raises StoreError on a broken log.
    """
    files = shelf.files()
    active = [file for file in files if file.status is PatternStatus.ACTIVE]
    found = [*(line for file in active for line in _file_faults(file, screens)), *_twice(files)]
    found += _decision_faults(shelf, active)
    if found:
        told = "\n".join(f"  {line}" for line in found)
        raise PatternError(f"nothing is written for agents until what is active is in order:\n{told}")


def _is_as_screened(pattern: Pattern, stamps: Mapping[str, str]) -> bool:
    stamp = stamp_of(pattern)
    return pattern.stamp == stamp and stamps.get(pattern.id, stamp) == stamp


def _file_faults(file: ShelfFile, screens: PatternScreens) -> Iterator[str]:
    pattern, path = file.pattern, file.path
    if pattern is None:
        yield from file.error.split("\n")
        return
    if file.status is PatternStatus.DEPRECATED:
        return
    refused = screens.refusals(pattern)
    yield from (f"{path}: {fault.place}: {fault.message}; rewrite it" for fault in refused)
    if pattern.stamp != stamp_of(pattern) and not refused:
        yield f"{path}: stamp: the text was changed since it was screened; review it, then {FIX}"


def _gone(shelf: Shelf, files: list[ShelfFile]) -> Iterator[str]:
    for file in files:
        if file.pattern and file.status is PatternStatus.ACTIVE and gone_lines(shelf.root, file.pattern.body):
            yield f"{file.path}: excerpt: its files no longer have it; renew it, or deprecate the pattern"


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


def _decision_faults(shelf: Shelf, files: list[ShelfFile]) -> Iterator[str]:
    """Yield which files lie elsewhere, or hold something else, than the log says."""
    entries, paths = shelf.entries(), {file.path for file in files}
    known, stamps = status_in_log(entries), stamps_in_log(entries)
    for file, status in unfinished(shelf):
        if file.path in paths:
            yield (
                f"{file.path}: the log has it in {status.value}, the file not: a move was cut short,"
                f" or made without 'tfgrpo patterns'; {FIX} puts it there"
            )
    for file in files:
        if file.pattern is None:
            continue
        if file.pattern.id not in known:
            yield _unlogged(file)
        elif file.status is not PatternStatus.DEPRECATED and stamps.get(file.pattern.id) not in (
            None,
            file.pattern.stamp,
        ):
            yield f"{file.path}: stamp: the log has that of another text; review it, then {FIX}"


def _log_faults(shelf: Shelf, files: list[ShelfFile]) -> Iterator[str]:
    yield from _decision_faults(shelf, files)
    entries = shelf.entries()
    known = status_in_log(entries)
    there = {file.pattern.id for file in files if file.pattern is not None}
    names = {entry.get("id"): entry.get("name") for entry in entries}
    readable = all(file.pattern is not None for file in files)
    for id_ in sorted(known.keys() - there) if readable else ():
        yield f"{shelf.log.path}: {names[id_]!r} has no file any more; put it back from git, and deprecate it"


def _unlogged(file: ShelfFile) -> str:
    where = f"{file.path}: the log has no entry of it"
    if file.status is PatternStatus.CANDIDATE:
        return f"{where}; {FIX} adds one"
    return f"{where}: nobody decided that; put it into candidates and promote or reject it there"
