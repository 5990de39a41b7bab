"""``tfgrpo patterns list``, ``show``, ``search`` and ``diff``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.texts.text import block, line
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.patterns.shelf.git_files import in_head
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of, write_pattern
from pytest_tfgrpo.patterns.shelf.promotion import measured
from pytest_tfgrpo.patterns.shelf.shelf import ShelfFile

ORDER = (PatternStatus.ACTIVE, PatternStatus.CANDIDATE, PatternStatus.DEPRECATED)


def list_(arguments: Arguments) -> Iterator[str]:
    """List the patterns of the repository by status: name, what a trial found, lesson."""
    shelf = open_shelf(arguments)
    files = shelf.files(*ORDER)
    if arguments.json:
        yield from (json.dumps(to_wire(file.pattern)) for file in files if file.pattern)
    elif files:
        yield from _rows(files)
    else:
        yield f"no patterns in {shelf.folder}; 'tfgrpo learn capture' makes the first"


def search(arguments: Arguments) -> Iterator[str]:
    """List the patterns whose name, title, lesson, description and tags have all of some words."""
    wanted = content(" ".join(arguments.words))
    found = [
        file
        for file in open_shelf(arguments).files(*ORDER)
        if file.pattern and wanted <= _subject(file.pattern)
    ]
    if found and wanted:
        yield from _rows(found)
    else:
        yield f"no pattern is about {line(' '.join(arguments.words), 80)!r}; write fewer or other words"


def show(arguments: Arguments) -> Iterator[str]:
    """Print a pattern: its file, and what was decided and said about it."""
    shelf = open_shelf(arguments)
    pattern = shelf.pattern(arguments.name)
    yield block(write_pattern(pattern))
    entries = [entry for entry in shelf.entries() if entry.get("id") == pattern.id]
    if entries:
        yield "log:"
    for entry in entries:
        yield f"  {entry.get('time')} {entry.get('event')} by {line(str(entry.get('by')), 80)}"
        yield f"    {line(str(entry.get('reason')), 500)}"


def diff(arguments: Arguments) -> Iterator[str]:
    """Print how a pattern differs from another, else from its last commit, else from its parents."""
    shelf = open_shelf(arguments)
    file = shelf.find(arguments.name)
    pattern = shelf.pattern(arguments.name)
    if arguments.other is not None:
        olds = [(arguments.other, write_pattern(shelf.pattern(arguments.other)))]
    elif (committed := in_head(shelf.root, file.path)) is not None:
        olds = [("HEAD", committed)]
    else:
        olds = [(one.name, write_pattern(one)) for one in shelf.patterns() if one.id in pattern.parents]
    if not olds:
        raise PatternError(f"{pattern.name!r} is neither committed nor has parents; name another pattern")
    for name, old in olds:
        yield from _difference(old, write_pattern(pattern), name, pattern.name)


def _difference(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    rows = list(difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm=""))
    yield block("\n".join(rows)) if rows else f"{new_name} does not differ from {old_name}"


def _rows(files: Sequence[ShelfFile]) -> Iterator[str]:
    told = ""
    for file in files:
        if file.status.value != told:
            told = file.status.value
            yield f"{told}:"
        yield f"  {line(file.name, 80)}"
        yield f"    {_told(file.pattern) if file.pattern else line(file.error, 200)}"


def _told(pattern: Pattern) -> str:
    """Return the lesson of a pattern behind what is known of it."""
    like = f", much like the deprecated {pattern.reintroduced}" if pattern.reintroduced else ""
    return f"[{_trial(pattern)}{like}] {line(pattern.lesson)}"


def _trial(pattern: Pattern) -> str:
    trial = pattern.trial
    if trial is None:
        return "untried"
    if trial.pattern_stamp != stamp_of(pattern):
        return f"untried as it is now; {trial.outcome} before"
    return f"{trial.outcome}, {measured(trial)}"


def _subject(pattern: Pattern) -> frozenset[str]:
    texts = (
        pattern.name.replace("-", " "),
        pattern.title,
        pattern.lesson,
        pattern.description,
        *pattern.tags,
    )
    return content("\n".join(texts))
