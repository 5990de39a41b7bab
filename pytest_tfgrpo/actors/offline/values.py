"""Values that tools hand to each other: their kinds, their limits and how they are written as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass

MAX_TEXT = 200_000
"""Longest text, in characters, that a tool reads or writes."""
MAX_ITEMS = 20_000
"""Most items of a list, rows of a table or keys of a record."""
MAX_DEPTH = 20
"""Deepest nesting of lists and records."""
MAX_NUMBER = 1e15
"""Largest size of a number: beyond it floats no longer hold every whole number."""

ValueKind: TypeAlias = Literal[
    "text", "items", "numbers", "dates", "number", "date", "quantity", "table", "record"
]


class ToolError(ValueError):
    """A tool cannot apply; the message goes into its frame."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with the name of its unit."""

    amount: float
    unit: str
    """Canonical name, as in the table of units."""


Value: TypeAlias = Any
"""str, int, float, date, Quantity, list of those, list of rows (dict) or dict."""


def kind_of(value: Value) -> ValueKind:
    """Return the kind of `value`; an empty list is ``items``. Raises ToolError on what no tool handles."""
    if isinstance(value, str):
        return "text"
    if _is_number(value):
        return "number"
    if isinstance(value, date):
        return "date"
    if isinstance(value, Quantity):
        return "quantity"
    if isinstance(value, Mapping):
        return "record"
    if isinstance(value, Sequence):
        return _kind_of_list(value)
    raise ToolError(f"no tool handles a value of type {type(value).__name__}")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _kind_of_list(items: Sequence[Value]) -> ValueKind:
    if not items:
        return "items"
    if all(isinstance(item, Mapping) for item in items):
        return "table"
    if all(map(_is_number, items)):
        return "numbers"
    if all(isinstance(item, date) for item in items):
        return "dates"
    return "items"


def check_depth(value: Value) -> None:
    """Raise ToolError when lists and records nest deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for outer in level
            if isinstance(outer, list | dict)
            for part in (outer.values() if isinstance(outer, dict) else outer)
        ]
    if level:
        raise ToolError(f"data nested deeper than {MAX_DEPTH} levels")


def checked(value: Value) -> Value:
    """Return `value` if it is within the limits; raises ToolError otherwise."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ToolError(f"text of {len(value)} characters is over the limit of {MAX_TEXT}")
    if isinstance(value, Sequence | Mapping) and not isinstance(value, str) and len(value) > MAX_ITEMS:
        raise ToolError(f"{len(value)} items are over the limit of {MAX_ITEMS}")
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:  # true of NaN, too
        raise ToolError("the number is not finite or over the limit of 1e15")
    if isinstance(value, Quantity):
        checked(value.amount)
    return value


def render(value: Value) -> str:
    """Return `value` as an answer: plain numbers, ISO dates, comma lists, JSON for rows and records."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.10f}".rstrip("0").rstrip(".") if value else "0"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Quantity):
        return f"{render(value.amount)} {value.unit}"
    if isinstance(value, Sequence) and not any(isinstance(item, Mapping | list) for item in value):
        return ", ".join(map(render, value))
    if isinstance(value, Mapping | Sequence):
        return json.dumps(value, ensure_ascii=False, default=render)
    return "" if value is None else json.dumps(value)
