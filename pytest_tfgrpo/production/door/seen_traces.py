"""What a process remembers of traces: whom one call names may be missing in the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

_REMEMBERED = 100_000
"""Traces that are remembered; whoever assembles them drops what comes later of one that opted out."""


class SeenTrace(NamedTuple):
    """What was named so far."""

    sessions: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    dropped: bool = False
    """Whether nothing of it is kept."""


class SeenTraces:
    """The traces that came last; may be shared by threads."""

    def __init__(self) -> None:
        self._traces: OrderedDict[str, SeenTrace] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, trace: object) -> bool:
        """Return whether nothing is kept of a trace."""
        found = self._traces.get(trace) if isinstance(trace, str) else None
        return found is not None and found.dropped

    def add(self, trace: str, sessions: Iterable[str], users: Iterable[str], *, dropped: bool) -> SeenTrace:
        """Take what a call says of a trace, and return what all of them said."""
        with self._lock:
            known = self._traces.get(trace, SeenTrace())
            found = SeenTrace(
                known.sessions.union(sessions), known.users.union(users), known.dropped or dropped
            )
            if found != SeenTrace():
                self._traces[trace] = found
                self._traces.move_to_end(trace)
            while len(self._traces) > _REMEMBERED:
                self._traces.popitem(last=False)
        return found
