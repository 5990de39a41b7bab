"""Strict JSON: decoder hooks that refuse invalid numbers and duplicate keys."""

from __future__ import annotations

import math
from typing import Any


def finite(text: str) -> float:
    """Return the number that `text` is; raises ValueError for NaN, infinities, and what is too large.

    It serves as ``parse_float`` and as ``parse_constant``.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a valid JSON number")
    return number


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these members; raises ValueError when a key stands twice in it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found
