"""The shelf that a command works on."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.shelf.pattern import FOLDER
from pytest_tfgrpo.patterns.shelf.shelf import Shelf


def open_shelf(arguments: Arguments) -> Shelf:
    """Return the shelf of the repository that is named, or that the current folder is part of."""
    start = Path(arguments.repo or ".").resolve()
    if not start.is_dir():
        raise SettingError(f"there is no folder {str(start)!r}; name a repository with --repo")
    marked = (
        folder
        for folder in (start, *start.parents)
        if (folder / FOLDER).is_dir() or (folder / ".git").exists()
    )
    return Shelf(next(marked, start))
