"""Whose data is not taken: sessions and users that opted out, and what was forgotten.

Rows of the table ``state``, which every process watches: ``optout.<session|user>.<ref>``,
``forgotten.<session|user>.<ref>`` and ``left.<session>``, where the ref is a pseudonym. The last says whose a
session is: what names that session and no user is theirs, as long as nobody else is seen there.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from pytest_tfgrpo.core.python.clock import utc_now, utc_time
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.storage.event_store import STATE, Table, TableEntry, change

Whose = Literal["session", "user"]
DropReason = Literal["", "attribute", "session", "user", "trajectory", "forgotten"]
"""Why data is not taken; empty: it is."""
OPTED_OUT, FORGOTTEN, LEFT = "optout.", "forgotten.", "left."
"""Starts of the keys."""
SWEEP = "sweep"
"""Key of the row that is there while something that came earlier may have to go."""
USER_REF = re.compile(rb"(?<![0-9A-Za-z_-])u-[0-9a-f]{32}(?![0-9A-Za-z_-])")
"""A user's pseudonym, wherever it stands."""
_TRUE = frozenset({"1", "true", "yes", "on"})


class OptOut(NamedTuple):
    """A session or a user whose data is not taken."""

    whose: Whose
    ref: str
    """The pseudonym."""
    since: str
    """ISO 8601; empty where that is not known."""


class LeftSession(NamedTuple):
    """A session of users of whom nothing is kept."""

    users: frozenset[str]
    """Their pseudonyms."""
    shared: bool = False
    """Whether somebody else was seen there."""


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
        self._watches = [self._table.watch(start) for start in (OPTED_OUT, FORGOTTEN, LEFT)]
        self._rows: dict[str, float] = {}
        """Seconds since 1970 of each row, by its key."""
        self._left: dict[str, LeftSession] = {}
        """By pseudonym of the session."""
        self.version = 0
        """Grows whenever nothing more is taken of somebody."""
        self.refresh()

    def add(self, *, session: str = "", user: str = "") -> None:
        """Take nothing of a session or user from now on; raises BusError."""
        for key in self._keys(session, user):
            change(self._table, key, lambda known: known or row_since())
        self.refresh()

    def remove(self, *, session: str = "", user: str = "") -> bool:
        """Take data of a session or user again; return whether there was a row. Raises BusError."""
        found = [change(self._table, key, lambda _: None) for key in self._keys(session, user)]
        self.refresh()
        return any(one is not None for one in found)

    def listed(self) -> list[OptOut]:
        """Return who opted out, by key; raises BusError."""
        kinds: tuple[Whose, ...] = ("session", "user")
        return [
            OptOut(whose, key.removeprefix(opt_out_key(whose, "")), noted_at(value))
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
        refs = [self._scrubber.session_ref(session) for session in sessions]
        for ref in refs:
            if opt_out_key("session", ref) in self._rows:
                return "session"
            if forgotten_key("session", ref) in self._rows:
                return "forgotten"
        named = [self._scrubber.user_ref(user) for user in users]
        reasons = [self._of_user(ref, at) for ref in named] or [self._of_owners(ref, at) for ref in refs]
        return next(filter(None, reasons), "")

    def reason_of_refs(self, data: Iterable[bytes], at: float) -> DropReason:
        """Return why redacted data that holds pseudonyms of users is not taken."""
        if not self._rows:
            return ""
        refs = {ref.decode() for part in data for ref in USER_REF.findall(part)}
        return self.reason((), sorted(refs), at)

    def _of_user(self, ref: str, at: float) -> DropReason:
        if opt_out_key("user", ref) in self._rows:
            return "user"
        return "forgotten" if at <= self._rows.get(forgotten_key("user", ref), -math.inf) else ""

    def _of_owners(self, session: str, at: float) -> DropReason:
        """Return why what names a session and no user is not taken."""
        left = self._left.get(session)
        if left is None or left.shared:
            return ""
        reasons = [self._of_user(user, at) for user in left.users]
        return reasons[0] if all(reasons) else ""

    def since(self, session: str) -> float:
        """Return the seconds since 1970 from which nothing is kept that names this session's pseudonym and
        no user: since its users opted out; infinity: all of it is kept."""
        left = self._left.get(session)
        if left is None or left.shared:
            return math.inf
        return max(self._rows.get(opt_out_key("user", user), math.inf) for user in left.users)

    @property
    def has_left(self) -> bool:
        """Whether there are sessions of users of whom nothing is kept."""
        return bool(self._left)

    @property
    def active(self) -> bool:
        """Whether there is anybody of whom nothing is kept."""
        return bool(self._rows)

    def saw(self, sessions: Iterable[str], users: Iterable[str], at: float) -> None:
        """Take that some data named these sessions and users: whose a session is follows from that.

        Raises BusError.
        """
        if not self._rows:
            return
        refs = {self._scrubber.user_ref(user) for user in users}
        gone = frozenset(ref for ref in refs if self._of_user(ref, at))
        if not gone and not (self._left and refs):
            return
        for session in {self._scrubber.session_ref(session) for session in sessions}:
            known = self._left.get(session)
            if gone or known:
                others = refs - gone - (known.users if known else frozenset())
                put_left(self._table, session, gone, shared=bool(others))
        self.refresh()

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
        if row.key.startswith(LEFT):
            session = row.key.removeprefix(LEFT)
            if row.value is None:
                self._left.pop(session, None)
            else:
                self._left[session] = _left(row.value)
                self.version += not self._left[session].shared
        elif row.value is None:
            self._rows.pop(row.key, None)
        else:
            self.version += 1
            since = noted_at(row.value)
            # a row without a time counts for good
            self._rows[row.key] = datetime.fromisoformat(since).timestamp() if since else math.inf


def owe_sweep(table: Table) -> None:
    """Request a sweep of what came earlier; raises BusError."""
    change(table, SWEEP, lambda _: b"due")


def put_left(table: Table, session: str, users: frozenset[str], *, shared: bool = False) -> None:
    """Note by pseudonyms whose a session is, and whether others are there; raises BusError."""

    def joined(value: bytes | None) -> bytes | None:
        known = _left(value) if value is not None else LeftSession(frozenset())
        found = LeftSession(known.users | users, known.shared or shared)
        if found == known:
            return value
        noted = {"at": utc_now(), "users": sorted(found.users), "shared": found.shared}
        return json.dumps(noted).encode()

    change(table, LEFT + session, joined)


def _left(value: bytes) -> LeftSession:
    try:
        found = json.loads(value)
        return LeftSession(frozenset(map(str, found["users"])), bool(found["shared"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return LeftSession(frozenset(), shared=True)


def noted_at(value: bytes) -> str:
    """Return since when a row is there, in ISO 8601; empty where it does not say."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return ""
    return utc_time(found.get("at")) or "" if isinstance(found, dict) else ""
