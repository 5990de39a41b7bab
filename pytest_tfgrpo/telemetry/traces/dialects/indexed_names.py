"""Lists and objects that stand in many attributes, one for each leaf: ``messages.0.message.role``."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.wire.wire import Json

_DEEPEST = 16
"""Names within one another."""
_DIGITS = 6
"""Of the place in a list."""


def gathered(attributes: Mapping[str, Json], prefix: str) -> list[Json]:
    """Return the items of the list that stands below `prefix`, in the order of their places.

    Names below `prefix` that are no places are left out. Raises ValueError for names deeper than 16, and
    where a leaf has names below it.
    """
    found: dict[str, Json] = {}
    start = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(start):
            *names, last = key[len(start) :].split(".")
            if not _is_place(names[0] if names else last):
                continue
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
    items = _with_lists(found)
    return items if isinstance(items, list) else []


def _with_lists(found: dict[str, Json]) -> Json:
    """Return an object, or the list that it is; so for its parts."""
    items = {key: _with_lists(one) if isinstance(one, dict) else one for key, one in found.items()}
    return [items[key] for key in sorted(items, key=int)] if all(map(_is_place, items)) else items


def _is_place(name: str) -> bool:
    return len(name) <= _DIGITS and name.isascii() and name.isdigit()
