"""Lines of a recording: a header, then one entry a line, ASCII, with a checksum; and how one is read.

An entry starts ``{"kind":"rollout","scenario":"...","fingerprint":"...","take":0``, so that a file is indexed
without parsing it, and ends ``,"crc":"89abcdef"}``, the CRC-32 of the bytes before it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.schema import load_schema, violations
from pytest_tfgrpo.core.wire.schema_accepts import accepts
from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.privacy.redact import find_secret, redact
from pytest_tfgrpo.recording.entries import (
    CallEntry,
    Participant,
    RecordingEntry,
    RecordingKey,
    RolloutEntry,
    kind_of,
)

SCHEMA = "tfgrpo.recording/1"
SHORT = 64
"""Characters of a text that comes up again and again: names, keys, reasons."""
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_CRC = len(',"crc":"89abcdef"}')
_START = re.compile(
    rb'\{"kind":"(call|rollout)","scenario":"([^"\\]*)",'
    rb'"fingerprint":"([0-9a-f]{64})","take":(0|[1-9]\d{0,8}),'
)
_CONFLICT = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedActor:
    """An actor, and how it was last recorded."""

    name: str
    identity: Mapping[str, Json]
    stamp: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Settings that answers depend on."""
    stamps: Mapping[str, str] = field(default_factory=dict)
    """Stamps of its run: settings, packs, scenarios, actor, starting library."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The first line of a recording."""

    schema: str = SCHEMA
    created: str
    """Day of the first entry, ``2026-01-31``."""
    updated: str
    """Day on which an entry last changed."""
    actors: tuple[RecordedActor, ...] = ()
    """By name; of several with one name the latest is last."""
    models: tuple[Participant, ...] = ()
    """Models that optimizer and judge called; in the same order."""
    rollouts: int = 0
    calls: int = 0
    redacted: int = 0
    """Entries that a secret was taken out of: who replays them sees the redacted text."""


class Line(NamedTuple):
    """A line of a file."""

    number: int
    """Counted from 1."""
    text: bytes
    """Without its end."""


def encode(entry: RecordingEntry) -> bytes:
    """Return the line of an entry without its end; raises ValueError or TypeError when it is not JSON."""
    first = {name: getattr(entry, name) for name in ("scenario", "fingerprint", "take")}
    body = _ENCODER.encode({"kind": kind_of(entry), **first, **_lean(entry)})
    head = body[:-1].encode("ascii")
    return b'%s,"crc":"%08x"}' % (head, zlib.crc32(head))


def encode_header(header: Header) -> bytes:
    """Return the first line of a recording without its end."""
    return json.dumps(to_wire(header), sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _lean(record: Any) -> Json:
    """Return a record as JSON without what a reader fills in anyway."""
    if dataclasses.is_dataclass(record):
        found = ((f, getattr(record, f.name)) for f in dataclasses.fields(record))
        return {
            f.name: _lean(v) for f, v in found if v != f.default and ("sparse" not in f.metadata or v != {})
        }
    if isinstance(record, tuple | list):
        return [value if type(value) in NUMBERS else _lean(value) for value in record]
    return to_wire(record)


def without_secrets(entry: RecordingEntry) -> RecordingEntry:
    """Return an entry fit for git; `redacted` counts its texts with a secret."""
    count = 0

    def clean(value: Json) -> Json:
        nonlocal count
        if isinstance(value, str):
            count += (plain := _redacted(value)) != value
            return plain
        if isinstance(value, Mapping):
            return {clean(key): clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [item if type(item) in NUMBERS else clean(item) for item in value]
        return value

    wire = to_wire(entry)
    cleaned = {name: clean(value) if name in SPOKEN else value for name, value in wire.items()}
    if not count:
        return entry
    kind: type[Any] = type(entry)
    found: RecordingEntry = from_wire(kind, cleaned | {"redacted": count})
    return replace(found, frames=_untold(found.frames)) if isinstance(found, RolloutEntry) else found


def _untold(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """Return frames without tokens, whose ids would spell the secret that their texts no longer hold."""
    return tuple(
        frame if frame.sampled is None else replace(frame, sampled=frame.sampled.without_tokens())
        for frame in frames
    )


def find_secrets(value: Json, where: str = "") -> list[str]:
    """Return where in a JSON value a secret is, with its kind; never the secret itself."""
    if isinstance(value, str):
        kind = find_secret(value) if _redacted(value) != value else None
        return [f"{where or '/'}: {kind}"] if kind else []
    parts: Iterable[tuple[str, Json]] = ()
    if isinstance(value, Mapping):
        parts = [(line(_redacted(key), 60), part) for key, item in value.items() for part in (key, item)]
    elif isinstance(value, list):
        parts = [(str(place), item) for place, item in enumerate(value) if type(item) not in NUMBERS]
    return [found for name, part in parts for found in find_secrets(part, f"{where}/{name}")]


def _redacted(text: str) -> str:
    return redact(text) if len(text) > SHORT else _redacted_short(text)


@lru_cache(maxsize=4096)
def _redacted_short(text: str) -> str:
    return redact(text)


NUMBERS = frozenset({int, float})
"""What no secret is in; frames hold long lists of them."""
SPOKEN = frozenset({"answer", "frames", "files", "failure", "error", "extra"})
"""What an agent or a model answered."""


def key_in(line: bytes) -> RecordingKey:
    """Return the key of an entry's line, without parsing more than need be; raises ValueError."""
    match = _START.match(line)
    if match is not None:
        kind, scenario, fingerprint, take = match.groups()
        return scenario.decode(), kind.decode(), fingerprint.decode(), int(take)
    if line.startswith(_CONFLICT):
        raise ValueError(
            "the file has an unresolved merge conflict; keep one side, then record what is missing"
        )
    value = parse(line)
    kind = _kind_of(value)
    _require(kind, value)
    return value.get("scenario", ""), kind, value["fingerprint"], value.get("take", 0)


def decode(line: bytes) -> RecordingEntry:
    """Return the entry of a line; raises ValueError saying what is wrong with it."""
    if line[-_CRC:] != b',"crc":"%08x"}' % zlib.crc32(line[:-_CRC]):
        parse(line)
        raise ValueError("the line was changed since it was recorded: its checksum does not match")
    value = parse(line)
    kind = _kind_of(value)
    _require(kind, value)
    found = {name: item for name, item in value.items() if name not in ("kind", "crc")}
    if kind == "call":
        return from_wire(CallEntry, found)
    entry = from_wire(RolloutEntry, found)
    if (entry.status == "ok") is not (entry.failure is None):
        raise ValueError(f"/failure: a rollout of status {entry.status!r} cannot be like this")
    return entry


def decode_header(line: bytes) -> Header:
    """Return the header of a recording; raises ValueError."""
    try:
        value = parse(line)
    except ValueError as error:
        raise ValueError(f"{error}; is this a recording?") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"it does not start with a header of schema {SCHEMA!r}")
    _require("header", value)
    return from_wire(Header, value)


def parse(line: bytes) -> Json:
    """Return the JSON value of a line; raises ValueError, also on numbers that are none."""
    try:
        return json.loads(line, parse_constant=finite, parse_float=finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}, column {error.colno}") from None


def _kind_of(value: Json) -> str:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in ("call", "rollout"):
        raise ValueError(f"an entry is an object of kind 'rollout' or 'call', not {kind!r}")
    return str(kind)


def _require(kind: str, value: Json) -> None:
    if not _accepts(kind)(value):
        for violation in violations(load_schema("recording")["$defs"][kind], value):
            raise ValueError(f"{violation.pointer or '/'}: {violation.message}")


@cache
def _accepts(kind: str) -> Callable[[Any], bool]:
    return accepts(load_schema("recording")["$defs"][kind])
