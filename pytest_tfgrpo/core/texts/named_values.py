"""Words and values as a message names them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 120
"""Characters of a value that a message shows."""


def short(value: object, limit: int = SHOWN) -> str:
    """Return the repr of `value`, cut to about `limit` characters."""
    try:
        text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply"
    return text if len(text) <= limit + 2 else text[:limit] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known word nearest to `word`; empty when none is near."""
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""
