"""Records of the audit: who read, wrote out, decided, left out or forgot what."""

from __future__ import annotations

import json
import uuid
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.storage.event_store import BusEvent, EventStore

PersonAction: TypeAlias = Literal["read", "export", "opt_out_added", "opt_out_removed"]
"""What a person does that has no event of its own."""


def read_ref(trajectory: str) -> str:
    """Return what stands for a trajectory in the record that somebody read it, whose id may be forgotten."""
    return derived_id("read", trajectory.lower())


def note(store: EventStore, action: PersonAction, what: str, *, actor: str, **said: Json) -> None:
    """Store that a person does something, before it is done; `said` is what else is known of it.

    Texts of users, and ids of theirs that are no pseudonyms, do not belong there: nothing forgets them.
    Raises BusError.
    """
    value = {"action": action, "what": what, "actor": actor, **said}
    data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    store.publish([BusEvent(id=str(uuid.uuid4()), subject=AUDIT_SUBJECT, time=utc_now(), data=data)])
