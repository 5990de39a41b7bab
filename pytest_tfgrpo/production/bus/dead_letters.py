"""Events that nobody could use, kept with the reason: a line of JSON, then the data as it was."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES
from pytest_tfgrpo.production.bus.streams import DEAD_SUBJECT
from pytest_tfgrpo.storage.event_store import BusEvent

MAX_DELIVERIES_CODE = "max_deliveries"
"""Why an event is dead that was delivered too often."""
_SPACE = uuid.UUID("6ca2e9a4-5f3c-5f0a-9a0d-2b6f6d1d6a11")
_MESSAGE_CHARS = 2000
_NAME_CHARS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """An event as it came, and why it is dead."""

    code: str
    """A short reason code: ``max_deliveries``, ``schema``, ..."""
    message: str
    pointer: str = ""
    """JSON pointer to what is wrong with the data, where something is."""
    stream: str = ""
    """Where it was, if it was in a stream."""
    consumer: str = ""
    attempts: int = 0
    id: str = ""
    """What the event called itself."""
    subject: str = ""
    time: str = ""
    size: int = 0
    """Bytes of the data; more than there are here where they were cut."""
    data: bytes = b""


def dead_event(letter: DeadLetter, time: str) -> BusEvent:
    """Return a dead letter as an event, with an id that follows from what it says."""
    head = {name: getattr(letter, name) for name in ("code", "stream", "consumer", "attempts", "pointer")}
    head |= {name: getattr(letter, name)[:_NAME_CHARS] for name in ("id", "subject", "time")}
    head |= {"message": letter.message[:_MESSAGE_CHARS], "size": letter.size or len(letter.data)}
    head["pointer"] = letter.pointer[:_MESSAGE_CHARS]
    line = json.dumps(head, sort_keys=True).encode() + b"\n"
    whole = line + letter.data
    identity = uuid.uuid5(_SPACE, whole.decode("latin-1"))
    return BusEvent(id=str(identity), subject=DEAD_SUBJECT, time=time, data=whole[:MAX_EVENT_BYTES])


def dead_letter_of(event: BusEvent) -> DeadLetter:
    """Return what an event of RL_DEAD says; raises BusError for one that is no dead letter."""
    line, found, data = event.data.partition(b"\n")
    try:
        head = json.loads(line)
        letter = DeadLetter(**head, data=data)
    except (ValueError, TypeError, RecursionError) as error:
        raise BusError(f"event {event.id!r} of RL_DEAD is no dead letter: {error}") from error
    if not found:
        raise BusError(f"event {event.id!r} of RL_DEAD is no dead letter: it has no data")
    return letter


def died(
    event: BusEvent, stream: str, consumer: str, code: str, message: str, attempts: int | None = None
) -> BusEvent:
    """Return the dead letter of an event of a stream."""
    letter = DeadLetter(
        code=code,
        message=message,
        stream=stream,
        consumer=consumer,
        attempts=event.attempts if attempts is None else attempts,
        id=event.id,
        subject=event.subject,
        time=event.time,
        data=event.data,
    )
    made = dead_event(letter, event.time)
    # once for each event and consumer, however often the move is tried
    return replace(made, id=str(uuid.uuid5(_SPACE, f"{stream}/{consumer}/{event.sequence}/{event.id}")))
