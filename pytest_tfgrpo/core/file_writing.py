"""JSON and texts written to a file whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import write_atomic

WORDS_AT_ONCE = 10_000
"""Pieces of a JSON text, such as brackets and values, that are put together before they are written."""


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, as its text is made; raises JournalError."""
    words = json.JSONEncoder(indent=1, ensure_ascii=True, allow_nan=False).iterencode(value)
    pieces = ("".join(some).encode("ascii") for some in iter(lambda: [*islice(words, WORDS_AT_ONCE)], []))
    write_pieces(path, chain(pieces, [b"\n"]))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; raises JournalError."""
    write_pieces(path, [text.encode("utf-8", "backslashreplace")])


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file atomically, as its pieces come; raises JournalError."""
    try:
        write_atomic(path, pieces)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error}") from error
