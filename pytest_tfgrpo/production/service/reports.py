"""Errors reported once, however often they come."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress

_MOST = 100
"""Distinct errors that are reported at all: an error may have another text each time."""
_VARYING = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")
"""Numbers and ids, which do not make another error."""


class FirstReports:
    """Passes on the first of equal texts; threads may share it."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Report a text unless one like it was."""
        kind = _VARYING.sub("#", text)[:500]
        with self._lock:
            if kind in self._seen or len(self._seen) > _MOST:
                return
            self._seen.add(kind)
            if len(self._seen) > _MOST:
                text = "further errors of other kinds are not reported"
        with suppress(Exception):  # whoever cannot hear of an error is not to cause another one
            self._report(text)
