"""Tools on records: JSON objects."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_tfgrpo.actors.offline.values import MAX_DEPTH, MAX_ITEMS, ToolError, Value, check_depth
from pytest_tfgrpo.core.wire.strict import finite


def read_json(content: str) -> Value:
    """Return the object or list that JSON `content` holds."""
    try:
        value = json.loads(content, parse_constant=finite)
    except (ValueError, RecursionError):
        raise ToolError("not a JSON file") from None
    if not isinstance(value, dict | list):
        raise ToolError("the JSON file holds neither an object nor a list")
    check_depth(value)
    return value


def fields_of(record: Mapping[str, Value]) -> dict[str, Value]:
    """Return all fields, the nested ones by their own name too; the one nearest to the top wins."""
    found: dict[str, Value] = {}
    level: list[Mapping[str, Value]] = [record]
    for _ in range(MAX_DEPTH):
        for part in level:
            for name, value in part.items():
                if len(found) < MAX_ITEMS:
                    found.setdefault(name, value)
        level = [v for part in level for v in part.values() if isinstance(v, Mapping)]
    return found


def get_field(record: Mapping[str, Value], field: str) -> Value:
    """Return the value of `field`, wherever in the record it stands; raises ToolError when it is null."""
    value = fields_of(record)[field]
    if value is None:
        raise ToolError(f"field {field!r} is null")
    return "true" if value is True else "false" if value is False else value


def list_keys(record: Mapping[str, Value]) -> list[str]:
    """Return the names of the fields at the top of the record."""
    return list(record)
