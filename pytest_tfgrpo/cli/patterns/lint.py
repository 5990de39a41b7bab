"""``tfgrpo patterns lint``."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf
from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.patterns.shelf.lint import lint
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens


def lint_command(arguments: Arguments) -> Iterator[str]:
    """Yield what is wrong; raises PatternError if anything is."""
    shelf = open_shelf(arguments)
    found = lint(shelf, PatternScreens())
    yield from found
    if found:
        raise PatternError(f"{len(found)} problems in {shelf.folder}; each line above says what to do")
    yield f"{len(shelf.files())} patterns, nothing wrong"
