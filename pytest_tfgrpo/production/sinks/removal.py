"""What sinks are to remove, as RL_AUDIT says it: whom somebody forgot, and runs of which nothing is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.dropped_runs import DROPPED_ACTIONS, SWEPT
from pytest_tfgrpo.production.view.view import FORGET
from pytest_tfgrpo.storage.event_store import BusEvent

_REF = re.compile(r"(?P<trajectory>[0-9a-f]{32})|(?P<session>s-[0-9a-f]{32})|(?P<user>u-[0-9a-f]{32})")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """Whose rows go, by pseudonym, and further events by their ids."""

    trajectories: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.trajectories or self.sessions or self.users or self.events)

    @property
    def of_people(self) -> bool:
        """Whether somebody is to be forgotten."""
        return bool(self.sessions or self.users)


def removal_of(audit: Iterable[BusEvent]) -> Removal:
    """Return what audit events say; others may write there too, and what is no pseudonym is nobody's."""
    refs: dict[str, set[str]] = {"trajectory": set(), "session": set(), "user": set()}
    events: set[str] = set()
    for event in audit:
        for ref in _refs(event.data):
            if (found := _REF.fullmatch(ref)) and found.lastgroup:
                refs[found.lastgroup].add(ref)
            elif _ID.fullmatch(ref):
                events.add(ref)
    return Removal(
        trajectories=frozenset(refs["trajectory"]),
        sessions=frozenset(refs["session"]),
        users=frozenset(refs["user"]),
        events=frozenset(events),
    )


def is_forget(event: BusEvent) -> bool:
    """Return whether an audit event says that somebody is to be forgotten."""
    return removal_of([event]).of_people


def _refs(data: bytes) -> list[str]:
    try:
        said: Json = load_json(data)
        action = said["action"]
        if action == FORGET or (action == "opt_out" and said["what"] == "trajectory"):
            return [str(said["ref"])]
        return [str(ref) for ref in said["refs"]] if action in (*DROPPED_ACTIONS, SWEPT) else []
    except (ValueError, KeyError, TypeError):
        return []
