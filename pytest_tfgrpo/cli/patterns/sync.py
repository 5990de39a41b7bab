"""``tfgrpo patterns sync``."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf, places_of
from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.texts.text import block, plural
from pytest_tfgrpo.patterns.shelf.lint import require_fit
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.sync import SyncChange, apply, changes

DONE = {"add": "added", "change": "changed", "remove": "removed"}


def sync(arguments: Arguments) -> Iterator[str]:
    """Write the active patterns as skills for agents, and remove the skills of those that are not."""
    shelf = open_shelf(arguments)
    require_fit(shelf, PatternScreens())
    found = changes(shelf, places_of(arguments, shelf), force=arguments.force)
    kept = [change for change in found if change.action == "keep"]
    if arguments.check:
        yield from (block(change.diff(shelf.root)) for change in found)
        if len(found) > len(kept):
            told = plural(len(found), "file", "is not", "are not")
            raise PatternError(f"{told} as the active patterns are; run 'tfgrpo patterns sync' and commit")
    else:
        apply(found)
        for change in found:
            if change.action in DONE:
                yield f"{DONE[change.action]}  {change.path.relative_to(shelf.root)}"
    if kept:
        raise PatternError("left as they are:\n" + "\n".join(_kept(change) for change in kept))
    if not found:
        yield "everything is up to date"


def _kept(change: SyncChange) -> str:
    return f"  {change.path}: {change.why}"
