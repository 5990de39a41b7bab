"""Runs of characters of one class, searched in bytes, one for each character of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

compiled = cache(re.compile)
"""Compiles a pattern where a text has what it starts with: most texts have nothing of it."""
FoundSpan: TypeAlias = tuple[int, int, str]
"""Start, end and kind."""
RANDOM = bytes(b"w"[0] if (chr(c).isalnum() and c < 128) or chr(c) in "+/" else 32 for c in range(256))
"""What marks the characters of base64 by ``w``."""


def one_byte(text: str) -> bytes:
    """Return one byte for each character of `text`: itself in Latin-1, else a question mark."""
    return text.encode("latin-1", "replace")


def runs(marks: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the runs of ``w`` of at least that length."""
    needle = b"w" * least
    start = marks.find(needle)
    while start >= 0:
        end = marks.find(b" ", start + least)
        end = len(marks) if end < 0 else end
        yield start, end
        start = marks.find(needle, end)
