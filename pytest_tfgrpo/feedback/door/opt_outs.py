"""Whose data is not taken: sessions and users that opted out, and what was forgotten.

Rows of the table ``state``, which every process watches: ``optout.<session|user>.<ref>`` and
``forgotten.<session|user>.<ref>``, where the ref is a pseudonym.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from pytest_tfgrpo.bus.protocol import STATE, Bus, TableEntry
from pytest_tfgrpo.core.clock import utc_now, utc_time
from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.feedback.door.scrubber import LoopScrubber

Whose = Literal["session", "user"]
DropReason = Literal["", "attribute", "session", "user", "trajectory", "forgotten"]
"""Why data is not taken; empty: it is."""
OPTED_OUT, FORGOTTEN = "optout.", "forgotten."
"""Starts of the keys."""
_TRUE = frozenset({"1", "true", "yes", "on"})


class OptOut(NamedTuple):
    """A session or a user whose data is not taken."""

    whose: Whose
    ref: str
    """The pseudonym."""
    since: str
    """ISO 8601; empty where that is not known."""


def opt_out_key(whose: Whose, ref: str) -> str:
    """Return the key of the row of a session or user that opted out."""
    return f"{OPTED_OUT}{whose}.{ref}"


def forgotten_key(whose: Whose, ref: str) -> str:
    """Return the key of the row of a session or user that was forgotten."""
    return f"{FORGOTTEN}{whose}.{ref}"


def row_since(at: str | None = None) -> bytes:
    """Return the value of a row of either kind, from a time in ISO 8601 on, or from now."""
    return json.dumps({"at": utc_now() if at is None else at}).encode()


def says_opt_out(value: object) -> bool:
    """Return whether an attribute ``opt_out`` says yes."""
    return isinstance(value, bool | int | str) and str(value).strip().lower() in _TRUE


class OptOuts:
    """The rows as they stand now; may be shared by threads."""

    def __init__(self, bus: Bus, scrubber: LoopScrubber) -> None:
        """Raises BusError."""
        self._table = bus.table(STATE)
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._watches = [self._table.watch(OPTED_OUT), self._table.watch(FORGOTTEN)]
        self._rows: dict[str, float] = {}
        """Seconds since 1970 of each row, by its key."""
        self.version = 0
        """Grows whenever nothing more is taken of somebody."""
        self.refresh()

    def add(self, *, session: str = "", user: str = "") -> None:
        """Take nothing of a session or user from now on; raises BusError."""
        for key in self._keys(session, user):
            value, revision = self._table.get(key)
            if value is None:
                try:
                    self._table.put(key, row_since(), revision)
                except RevisionConflict:  # somebody else did
                    continue
        self.refresh()

    def remove(self, *, session: str = "", user: str = "") -> bool:
        """Take data of a session or user again; return whether there was a row. Raises BusError."""
        found = False
        for key in self._keys(session, user):
            value, revision = self._table.get(key)
            if value is not None:
                self._table.remove(key, revision)
                found = True
        self.refresh()
        return found

    def listed(self) -> list[OptOut]:
        """Return who opted out, by key; raises BusError."""
        kinds: tuple[Whose, ...] = ("session", "user")
        return [
            OptOut(whose, key.removeprefix(opt_out_key(whose, "")), _since(value))
            for whose in kinds
            for key, (value, _) in sorted(self._table.list(opt_out_key(whose, "")).items())
        ]

    def refresh(self) -> None:
        """Look what other processes changed; raises BusError."""
        with self._lock:
            for watch in self._watches:
                while changed := watch.changes(0):
                    for row in changed:
                        self._take(row)

    def reason(self, sessions: Iterable[str], users: Iterable[str], at: float) -> DropReason:
        """Return why data of these sessions and users, which happened at `at`, is not taken."""
        if not self._rows:
            return ""
        for session in sessions:
            ref = self._scrubber.session_ref(session)
            if opt_out_key("session", ref) in self._rows:
                return "session"
            if forgotten_key("session", ref) in self._rows:
                return "forgotten"
        for user in users:
            ref = self._scrubber.user_ref(user)
            if opt_out_key("user", ref) in self._rows:
                return "user"
            if at <= self._rows.get(forgotten_key("user", ref), -math.inf):
                return "forgotten"
        return ""

    def withdrawn(self, session: str, user: str, at: float) -> bool:
        """Return whether nothing is kept of a session or user by now; raises BusError."""
        self.refresh()
        return bool(self.reason([session], [user] if user else [], at))

    def close(self) -> None:
        """Watch no longer; raises BusError."""
        with self._lock:
            for watch in self._watches:
                watch.close()

    def _keys(self, session: str, user: str) -> list[str]:
        keys = [opt_out_key("session", self._scrubber.session_ref(session))] if session.strip() else []
        return keys + ([opt_out_key("user", self._scrubber.user_ref(user))] if user.strip() else [])

    def _take(self, row: TableEntry) -> None:
        if row.value is None:
            self._rows.pop(row.key, None)
        else:
            self.version += 1
            since = _since(row.value)
            # a row without a time counts for good
            self._rows[row.key] = datetime.fromisoformat(since).timestamp() if since else math.inf


def _since(value: bytes) -> str:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return ""
    return utc_time(found.get("at")) or "" if isinstance(found, dict) else ""
