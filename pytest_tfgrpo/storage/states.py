"""A state machine as a table: where a trigger leads from a state, and the event that owes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

S = TypeVar("S", bound=str)
"""A state."""
T = TypeVar("T", bound=str)
"""A trigger."""


class StateTable(Generic[S, T]):
    """Rows ``(state, trigger): (next state, subject of the event owed)``; nothing else changes a state."""

    def __init__(self, rows: Mapping[tuple[S, T], tuple[S, str]]) -> None:
        """An empty subject owes no event."""
        self.rows = MappingProxyType(dict(rows))
        leads_on = {state for state, _ in rows}
        self.final = frozenset(state for state, _ in rows.values()) - leads_on
        """States that nothing leaves."""
        self.states = frozenset(leads_on | self.final)

    def after(self, state: S, trigger: T) -> S | None:
        """Return where `trigger` leads from `state`; None: nowhere."""
        found = self.rows.get((state, trigger))
        return None if found is None else found[0]
