"""Strict JSON from others: nothing that it holds is more than a ValueError.

Also decoder hooks that refuse invalid numbers and duplicate keys.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from pytest_tfgrpo.core.wire.wire import Json


def load_json(
    data: str | bytes,
    *,
    parse_float: Callable[[str], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Json:
    """Return the value that a text of others is, as ``json.loads`` does.

    Raises ValueError, also for what is nested too deeply, and for bytes in no encoding of JSON.
    """
    try:
        return json.loads(
            data,
            parse_float=parse_float,
            parse_constant=parse_constant,
            object_pairs_hook=object_pairs_hook,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_json(text: str) -> bool:
    """Return whether a text of others is JSON."""
    try:
        load_json(text)
    except ValueError:
        return False
    return True


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
