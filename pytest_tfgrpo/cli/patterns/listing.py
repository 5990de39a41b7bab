"""``tfgrpo patterns list`` and ``show``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.core.texts.text import block, line
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of, write_pattern


def list_(arguments: Arguments) -> Iterator[str]:
    """Yield the patterns, those in force first."""
    shelf = open_shelf(arguments)
    files = shelf.files(PatternStatus.ACTIVE, PatternStatus.CANDIDATE, PatternStatus.DEPRECATED)
    if arguments.json:
        yield from (json.dumps(to_wire(file.pattern)) for file in files if file.pattern)
        return
    if not files:
        yield f"no patterns in {shelf.folder}; 'tfgrpo learn capture' makes the first"
    told = ""
    for file in files:
        if file.status.value != told:
            told = file.status.value
            yield f"{told}:"
        yield f"  {file.name}"
        yield f"    {told_of(file.pattern) if file.pattern else line(file.error, 200)}"


def told_of(pattern: Pattern) -> str:
    """Return the lesson of a pattern behind what is known of it."""
    known = trial_of(pattern) + (
        f", much like the deprecated {pattern.reintroduced}" if pattern.reintroduced else ""
    )
    return f"[{known}] {line(pattern.lesson)}"


def trial_of(pattern: Pattern) -> str:
    """Return what a trial of the pattern as it is found."""
    trial = pattern.trial
    if trial is None:
        return "untried"
    if trial.pattern_stamp != stamp_of(pattern):
        return f"untried as it is now; {trial.outcome} before"
    return f"{trial.outcome}, {trial.gain:+.3f} ({trial.low:+.3f} to {trial.high:+.3f})"


def show(arguments: Arguments) -> Iterator[str]:
    """Yield a pattern and its log."""
    shelf = open_shelf(arguments)
    pattern = shelf.pattern(arguments.name)
    yield block(write_pattern(pattern))
