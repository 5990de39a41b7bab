"""``tfgrpo patterns lint``."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf, reviewers_of, screens_of
from pytest_tfgrpo.core.errors import PatternError, SettingError
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.patterns.shelf.lint import fix, lint
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision
from pytest_tfgrpo.patterns.shelf.promotion import person_refusals

REVIEWED = "reviewed after an edit"


def lint_command(arguments: Arguments) -> Iterator[str]:
    """Check and screen all patterns, and check their log; exit 1 if something is wrong."""
    shelf, screens = open_shelf(arguments), screens_of(arguments)
    if arguments.fix:
        if arguments.by is None:
            raise SettingError("--fix needs --by: the log keeps who reviewed what was edited")
        if refused := list(person_refusals(arguments.by, reviewers_of(arguments, shelf, screens))):
            raise PatternError(f"nothing is mended: {'; '.join(refused)}")
        yield from fix(shelf, screens, ShelfDecision(by=arguments.by, reason=REVIEWED))
    found = lint(shelf, screens)
    yield from found
    if found:
        told = plural(len(found), "problem")
        raise PatternError(f"{told} in {shelf.folder}; each line above says what to do")
    yield f"{plural(len(shelf.files()), 'pattern')}, nothing wrong"
