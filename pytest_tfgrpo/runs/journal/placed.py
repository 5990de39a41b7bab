"""Values by id, of which only the places are held."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_Place = TypeVar("_Place")


class PlacedValues(MutableMapping[str, _Value], Generic[_Value, _Place]):
    """Values in the order in which they came; only `[]` reads one."""

    def __init__(self, places: dict[str, _Place]) -> None:
        """Have those at some places."""
        self._places = places

    def __delitem__(self, id_: str) -> None:
        """Forget a value."""
        del self._places[id_]

    def __contains__(self, id_: object) -> bool:
        """Return whether a value is there; nothing is read for it."""
        return id_ in self._places

    def __iter__(self) -> Iterator[str]:
        """Yield the ids."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)
