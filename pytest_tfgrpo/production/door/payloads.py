"""Payloads at the door: opted out, refused, or an event whose texts are redacted."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    LARGEST_INPUT,
    REWARD,
    TRAJECTORY,
    EventFault,
    EventRefusal,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter
from pytest_tfgrpo.production.door.hidden_users import UserHider
from pytest_tfgrpo.production.door.opt_outs import DropReason, OptOuts, says_opt_out
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.telemetry.traces.dialects.dialects import is_scrubbed

_LONGEST_DEAD = 262_144
"""Bytes of a payload that are kept of one that is refused."""
_REVISIONS = 8
"""Of a reward, whose ids others do not give."""
_USERS = ("user_ref", "user_id", "user")
_OPT_OUTS = ("opt_out", "tfgrpo.opt_out")


@dataclass(frozen=True, kw_only=True, slots=True)
class _PayloadKind:
    """What a subject's payload calls its id and its time."""

    name: str
    id_key: str
    space: str
    """First part of what the event's id derives from."""
    time_key: str = "timestamp"


_KINDS: Mapping[str, _PayloadKind] = MappingProxyType(
    {
        TRAJECTORY: _PayloadKind(
            name="trajectory", id_key="trajectory_id", space="trajectory", time_key="end_timestamp"
        ),
        FEEDBACK: _PayloadKind(name="feedback", id_key="feedback_id", space="feedback"),
        REWARD: _PayloadKind(name="reward", id_key="reward_id", space="reward-event"),
    }
)
_OTHER = _PayloadKind(name="payload", id_key="id", space="payload")


_NO_LETTER = DeadLetter(code="", message="")


class PayloadSubjects(NamedTuple):
    """Whom a payload is about."""

    sessions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    at: float = -math.inf
    """Seconds since 1970."""


_NOBODY = PayloadSubjects()


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenPayload:
    """What becomes of a payload: one of reason, refusal and event is set."""

    reason: DropReason = ""
    what: str = ""
    """Of what opted out: ``trajectory``, ``feedback``, ``reward``."""
    ref: str = ""
    """What stands for it."""
    event: BusEvent | None = None
    refusal: EventRefusal | None = None
    letter: DeadLetter = _NO_LETTER
    """What is kept of what is refused."""
    about: PayloadSubjects = _NOBODY


def bus_event(event: RlEvent, at: str) -> BusEvent:
    """Return a checked event as the bus takes it: its data are the payload as JSON."""
    data = json.dumps(event.data, separators=(",", ":"), allow_nan=False).encode("ascii")
    return BusEvent(id=event.id, subject=event.subject, time=at, data=data)


class PayloadDoor:
    """Judges payloads one by one; may be shared by threads."""

    def __init__(self, scrubber: LoopScrubber, opt_outs: OptOuts, dropped: Container[str]) -> None:
        """`dropped` are the ids of trajectories of which nothing is kept."""
        self._scrubber = scrubber
        self._dropped = dropped
        self._opt_outs = opt_outs

    def take(self, subject: str, payload: Json | bytes) -> TakenPayload:
        """Return what becomes of a payload."""
        kind = _KINDS.get(subject, _OTHER)
        value = _read(payload)
        data = value if isinstance(value, dict) else {}
        about = self._about(data, kind)
        if value is None and isinstance(payload, bytes):
            sessions, users = self._scrubber.named(payload)
            about = PayloadSubjects(sessions=tuple(sessions), users=tuple(users))
        reason = self._reason(data, kind, about)
        taken = TakenPayload() if reason else self._judged(subject, kind, payload, value, about)
        reason = reason or self._opt_outs.reason_of_refs(_kept(taken), about.at)
        if reason:
            ref = self._ref(kind, payload, data)
            return TakenPayload(reason=reason, what=kind.name, ref=ref, about=about)
        return replace(taken, about=about)

    def _judged(
        self, subject: str, kind: _PayloadKind, payload: Json | bytes, value: Json, about: PayloadSubjects
    ) -> TakenPayload:
        """Return the event of a payload, or why there is none."""
        name = value.get(kind.id_key) if isinstance(value, dict) else None
        event_id = derived_id(kind.space, name.lower()) if isinstance(name, str) else derived_id(subject)
        hider = UserHider(self._scrubber, about.users)
        envelope = wrap(subject, self._with_pseudonyms(value), event_id=event_id)
        found = check_event(payload if value is None else envelope, hider)
        if isinstance(found, RlEvent) and subject == REWARD and _is_ours(found.data):
            message = "is the id of a reward that the loop itself computes; give this one another"
            found = EventRefusal(fault=EventFault.SCHEMA, pointer="/data/reward_id", message=message)
        if isinstance(found, RlEvent):
            return TakenPayload(event=bus_event(found, utc_time(found.data.get(kind.time_key)) or found.time))
        refusal = EventRefusal(
            fault=found.fault, pointer=found.pointer.removeprefix("/data"), message=found.message
        )
        return TakenPayload(refusal=refusal, letter=self._letter(subject, refusal, payload, hider))

    def _about(self, data: Mapping[str, Json], kind: _PayloadKind) -> PayloadSubjects:
        metadata = data.get("metadata")
        places = [metadata if isinstance(metadata, dict) else {}, data]
        named = {
            f"metadata.{key}": place[key] for place in reversed(places) for key in _USERS if key in place
        }
        sessions = [one.strip() for place in places if isinstance(one := place.get("session_id"), str)]
        at = utc_time(data.get(kind.time_key))
        return PayloadSubjects(
            sessions=tuple(one for one in sessions if one and not is_scrubbed(one)),
            users=tuple(self._scrubber.users.named([named, data])),
            at=-math.inf if at is None else datetime.fromisoformat(at).timestamp(),
        )

    def _reason(self, data: Mapping[str, Json], kind: _PayloadKind, about: PayloadSubjects) -> DropReason:
        metadata = data.get("metadata")
        if isinstance(metadata, dict) and any(says_opt_out(metadata.get(key)) for key in _OPT_OUTS):
            return "attribute"
        reason = self._opt_outs.reason(*about)
        if not reason and kind.name != "trajectory" and data.get("trajectory_id") in self._dropped:
            return "trajectory"
        return reason

    def _with_pseudonyms(self, value: Json) -> Json:
        """Return a payload whose metadata has the user as a pseudonym alone, under ``user_ref``."""
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if not isinstance(metadata, dict):
            return self._scrubber.with_refs("", value)
        users = self._scrubber.users.named([{f"metadata.{key}": metadata.get(key) for key in _USERS}])
        users = users or self._scrubber.users.named([{"metadata": metadata}])
        if users:
            others = {key: one for key, one in metadata.items() if key not in _USERS}
            value = {**value, "metadata": {**others, "user_ref": self._scrubber.user_ref(users[0])}}
        return self._scrubber.with_refs("", value)

    def _ref(self, kind: _PayloadKind, payload: Json | bytes, data: Mapping[str, Json]) -> str:
        name = data.get(kind.id_key)
        whole = name.lower() if isinstance(name, str) else self._scrubber.document(payload)
        return self._scrubber.ref(kind.name, whole)

    def _letter(
        self, subject: str, refusal: EventRefusal, payload: Json | bytes, hider: UserHider
    ) -> DeadLetter:
        text = hider.document(self._scrubber.document(payload, _LONGEST_DEAD))
        return DeadLetter(
            code=refusal.fault.value,
            message=refusal.message,
            pointer=refusal.pointer,
            subject=subject,
            size=len(payload) if isinstance(payload, bytes) else 0,
            data=text.encode(),
        )


def _kept(taken: TakenPayload) -> list[bytes]:
    """Return what is stored of a payload."""
    return [taken.letter.data] if taken.event is None else [taken.event.data]


def _is_ours(reward: Mapping[str, Json]) -> bool:
    """Return whether a reward has an id that the loop's evaluator gives, or will give."""
    said = reward.get("metadata", {}).get("revision", 1)
    revisions = {said, *range(1, _REVISIONS + 1)}
    return reward["reward_id"] in {derived_id("reward", reward["trajectory_id"], str(n)) for n in revisions}


def _read(payload: Json | bytes) -> Json:
    """Return the value of a payload; None where it is not JSON."""
    if not isinstance(payload, bytes):
        return payload
    try:
        return json.loads(payload) if len(payload) <= LARGEST_INPUT else None
    except (ValueError, RecursionError):
        return None
