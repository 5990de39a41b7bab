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


def phase_label(epoch: int, mode: str, dev_sweep: int = 0) -> str:
    """Return the name of a phase: ``early``, ``baseline``, ``placebo``, ``epoch1-dev2``, ``epoch3-eval``."""
    suffix = f"-{mode}" if mode in ("eval", "evidence") else f"-dev{dev_sweep}" if dev_sweep else ""
    return mode if mode in ("early", "baseline", "placebo") else f"epoch{epoch}{suffix}"
