"""Evidence files: attempts at tasks that others made and rewarded, checked whole, read again group by group.

A file may hold more attempts than memory does: of each group its task and its place are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import EvidenceError
from pytest_tfgrpo.core.evidence import EVIDENCE, EvidenceAttempt, EvidenceGroup, EvidenceHeader
from pytest_tfgrpo.core.files import open_plain
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import extent, violations
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.strict import finite, load_json, unique
from pytest_tfgrpo.core.wire.wire import Json, from_wire

LINE_MAX = 64_000_000
"""Bytes of a line."""
PROMPTS_MAX = 200_000_000
"""Characters of all prompts together, which are held in memory."""
DEPTH_MAX = 64


class GroupOnFile(NamedTuple):
    """A group of an evidence file: its task, and where its attempts lie."""

    key: str
    domain: str
    prompt: str
    task_key: str | None
    attempts: int
    has_spread: bool
    """Whether its rewards differ."""
    line: int
    offset: int
    sha256: str
    """Stamp of the line."""


class EvidenceFile:
    """A sound file of evidence."""

    def __init__(self, path: Path) -> None:
        """Read it whole; raises EvidenceError naming file, line and key."""
        self.path = path
        self.groups: dict[str, GroupOnFile] = {}
        """By key, in order."""
        self.header = EvidenceHeader()
        digest, held, number = sha256(), 0, 0
        with _reading(path) as file:
            for number, offset, data in _lines(path, file):
                digest.update(data)
                value = _value(path, number, data)
                if number == 1:
                    self.header = _header(path, value)
                    continue
                place = _place(path, number, offset, data, _group(path, number, value))
                held += len(place.prompt)
                if held > PROMPTS_MAX:
                    what = f"the prompts have more than {PROMPTS_MAX} characters; take fewer groups"
                    raise _error(path, number, what)
                if (known := self.groups.setdefault(place.key, place)) is not place:
                    raise _error(path, number, f"group {place.key!r} stands on line {known.line} too", "/id")
        if not number:
            raise _error(path, 1, f"it is empty, where a header of {EVIDENCE!r} should be")
        self.stamp: str = digest.hexdigest()
        self._last: tuple[str, tuple[EvidenceAttempt, ...]] = ("", ())

    def attempts(self, key: str) -> tuple[EvidenceAttempt, ...]:
        """Return the attempts of a group; raises EvidenceError where the file has changed since."""
        if self._last[0] != key:
            place = self.groups[key]
            with _reading(self.path) as file:
                file.seek(place.offset)
                data = file.readline(LINE_MAX + 1)
            if stamp_bytes(data) != place.sha256:
                raise _error(self.path, place.line, "it has changed while the run read it; restore it")
            group = _group(self.path, place.line, _value(self.path, place.line, data))
            self._last = key, group.attempts
        return self._last[1]


def _reading(path: Path) -> BufferedIOBase:
    try:
        return open_plain(path)  # type: ignore[return-value]
    except OSError as error:
        raise EvidenceError(f"evidence: {str(path)!r} cannot be read: {error.strerror}") from None


def _lines(path: Path, file: BufferedIOBase) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of each line; raises EvidenceError."""
    number = offset = 0
    while data := file.readline(LINE_MAX + 1):
        number += 1
        if len(data) > LINE_MAX:
            raise _error(path, number, f"the line is longer than {LINE_MAX} bytes")
        yield number, offset, data
        offset += len(data)


def _value(path: Path, number: int, data: bytes) -> Json:
    try:
        text = data.decode()
        value = load_json(text, parse_float=finite, parse_constant=finite, object_pairs_hook=unique)
    except ValueError as error:
        raise _error(path, number, f"not a JSON value in UTF-8: {error}") from None
    if not isinstance(value, Mapping):
        raise _error(path, number, f"{short(value)} is not an object")
    if extent(value)[1] > DEPTH_MAX:
        raise _error(path, number, f"nested more than {DEPTH_MAX} levels deep")
    if b"\\ud" in data.lower() and not _is_text(value):
        raise _error(path, number, "a text holds half a surrogate pair")
    return value


def _is_text(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _header(path: Path, value: Json) -> EvidenceHeader:
    if value.get("schema") != EVIDENCE:
        raise _error(path, 1, f"{short(value.get('schema'))} is not the schema {EVIDENCE!r}", "/schema")
    _require_valid(path, 1, "evidence-header", value)
    return from_wire(EvidenceHeader, {key: of for key, of in value.items() if key != "schema"})


def _group(path: Path, number: int, value: Json) -> EvidenceGroup:
    _require_valid(path, number, "evidence-group", value)
    return from_wire(EvidenceGroup, value)


def _require_valid(path: Path, number: int, schema: str, value: Json) -> None:
    if found := violations(schema, value):
        lines = [f"{path}:{number}: #{one.pointer}: {one.message}" for one in found]
        raise EvidenceError("\n".join(lines))


def _place(path: Path, number: int, offset: int, data: bytes, group: EvidenceGroup) -> GroupOnFile:
    if not group.prompt.strip():
        raise _error(path, number, "the prompt is blank", "/prompt")
    return GroupOnFile(
        key=group.key,
        domain=group.domain,
        prompt=group.prompt,
        task_key=group.task_key,
        attempts=len(group.attempts),
        has_spread=len({attempt.total_reward for attempt in group.attempts}) > 1,
        line=number,
        offset=offset,
        sha256=stamp_bytes(data),
    )


def _error(path: Path, number: int, message: str, pointer: str = "") -> EvidenceError:
    at = f"#{pointer}: " if pointer else ""
    return EvidenceError(f"{path}:{number}: {at}{message}")
