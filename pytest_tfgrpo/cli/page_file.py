"""Write a page where the command line names it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.texts.text import line


def write(path: Path, written: Callable[[], None]) -> str:
    """Write a page by `written`; returns the line that says so. Raises JournalError."""
    if path.is_dir():
        raise JournalError(f"cannot write the page {path}: it is a folder; name a file with --html")
    try:
        written()
    except JournalError as error:
        raise JournalError(f"{error}; name another place with --html FILE") from error
    return f"page   {line(os.path.relpath(path))}"
