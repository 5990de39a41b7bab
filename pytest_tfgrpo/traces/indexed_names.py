"""Lists and objects that stand in many attributes, one for each leaf: ``messages.0.message.role``."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.wire import Json

_DEEPEST = 16
"""Names within one another."""
_DIGITS = 6
"""Of the place in a list."""


def gathered(attributes: Mapping[str, Json], prefix: str) -> Json:
    """Return what stands below `prefix`: an object, or a list in the order of its places; None for nothing.

    Raises ValueError for names deeper than 16, and where a leaf has names below it.
    """
    found: dict[str, Json] = {}
    start = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(start):
            *names, last = key[len(start) :].split(".")
            if len(names) >= _DEEPEST:
                raise ValueError(f"an attribute is deeper than {_DEEPEST} names: {key[:80]!r}")
            at = found
            for name in names:
                at = at.setdefault(name, {})
                if not isinstance(at, dict):
                    raise ValueError(f"an attribute is a value and an object: {key[:80]!r}")
            if isinstance(at.get(last), dict):
                raise ValueError(f"an attribute is a value and an object: {key[:80]!r}")
            at[last] = value
    return _with_lists(found) if found else None


def _with_lists(found: dict[str, Json]) -> Json:
    """Return an object, those of its parts that are lists as lists."""
    items = {key: _with_lists(one) if isinstance(one, dict) else one for key, one in found.items()}
    if all(key.isascii() and key.isdigit() and len(key) <= _DIGITS for key in items):
        return [items[key] for key in sorted(items, key=int)]
    return items
