"""Tools on lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_tfgrpo.actors.offline.values import ToolError, Value, render


def count_items(items: Sequence[Value]) -> int:
    """Return how many items a list, or rows a table, has."""
    return len(items)


def unique_items(items: Sequence[Value]) -> list[Value]:
    """Return the items without repeats, each at its first place; case of letters does not count."""
    first: dict[str, Value] = {}
    for item in items:
        first.setdefault(render(item).casefold(), item)
    return list(first.values())


def sort_items(items: Sequence[Value]) -> list[Value]:
    """Return the items in ascending order: by size, by time, or by the alphabet."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: render(item).casefold())


def first_item(items: Sequence[Value]) -> Value:
    """Return the first item; raises ToolError on an empty list."""
    if not items:
        raise ToolError("the list is empty")
    return items[0]


def longest_item(items: Sequence[Value]) -> Value:
    """Return the first of the longest items; raises ToolError on an empty list."""
    if not items:
        raise ToolError("the list is empty")
    return max(items, key=lambda item: len(render(item)))


def most_common_item(items: Sequence[Value]) -> Value:
    """Return the item that occurs most often; raises ToolError when none occurs twice."""
    counts = Counter(render(item).casefold() for item in items)
    if not counts or max(counts.values()) < 2:
        raise ToolError("no item occurs twice")
    winner = counts.most_common(1)[0][0]
    return next(item for item in items if render(item).casefold() == winner)
