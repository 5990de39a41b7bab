"""What an arena says, as files in its folder: a value for programs, and a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_tfgrpo.arena.page import arena_page
from pytest_tfgrpo.core.file_writing import write_json, write_text

COMPARISON: Final = "comparison.json"
PAGE: Final = "arena.html"


def write_comparison(folder: Path, value: Mapping[str, Any]) -> Path:
    """Write what `compare_sides` found, and its page; returns the path of the page. Raises JournalError."""
    write_json(folder / COMPARISON, value)
    page = folder / PAGE
    write_text(page, arena_page(value))
    return page
