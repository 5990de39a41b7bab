"""The body of a chat completion: what the proxy reads in it, and the texts that it adds to it.

Only the system message changes, or the user's first one; every other byte stays as the client wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pytest_tfgrpo.core.wire.wire import Json

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")
_SYSTEM = ("system", "developer")


class ChatBody(NamedTuple):
    """A body that is a chat completion."""

    text: str
    fields: Mapping[str, Json]
    messages: Sequence[Json]
    first: tuple[int, int]
    """Where the first message begins and ends in the text."""

    @property
    def task(self) -> str:
        """Text of the user's first message."""
        return next((text_of(one) for one in self.messages if _role(one) == "user"), "")

    @property
    def session(self) -> str:
        """Id of the conversation, as the body says; empty where it does not."""
        return _name(self.metadata.get("session_id")) or self.user

    @property
    def user(self) -> str:
        """Whom the client names as its user."""
        return _name(self.fields.get("user"))

    @property
    def metadata(self) -> Mapping[str, Json]:
        """What the client says beside its messages."""
        found = self.fields.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def head(self) -> str:
        """What all requests of a conversation have in common: all up to the user's first message."""
        upto = next((at for at, one in enumerate(self.messages) if _role(one) == "user"), 0)
        return json.dumps(self.messages[: upto + 1])

    def with_texts(self, parts: Sequence[str], place: Literal["system", "user"]) -> bytes:
        """Return the body with texts in its system message, or in front of the user's first message.

        One that this has already is not added again. Without a user's message they are system text.
        """
        at = next((n for n, one in enumerate(self.messages) if _role(one) == "user"), 0)
        opens = place == "user" and _role(self.messages[at]) == "user"
        message = self.messages[at if opens else 0]
        start, end = self._span(at) if opens else self.first
        if not opens and _role(message) not in _SYSTEM:
            added = json.dumps({"role": "system", "content": "\n\n".join(parts)}) + ","
            end = start
        else:
            there = text_of(message)
            parts = [part for part in parts if part not in there]
            if not parts:
                return self.text.encode()
            content = _joined(message.get("content"), parts, first=opens)
            added = json.dumps({**message, "content": content})
        return (self.text[:start] + added + self.text[end:]).encode()

    def _span(self, at: int) -> tuple[int, int]:
        """Return where a message begins and ends in the text."""
        start, end = self.first
        for _ in range(at):
            start = _blanks(self.text, _blanks(self.text, end) + 1)
            end = _DECODER.raw_decode(self.text, start)[1]
        return start, end


def read_chat(body: bytes) -> ChatBody | None:
    """Return a body with its messages; None where it is no chat completion that could be changed."""
    try:
        text = body.decode()
        fields, messages, place = _members(text)
        if not isinstance(messages, list) or not messages or not isinstance(messages[0], dict):
            return None
        start = _blanks(text, place + 1)
        return ChatBody(text, fields, messages, (start, _DECODER.raw_decode(text, start)[1]))
    except (ValueError, RecursionError, IndexError):
        return None


def text_of(message: Json) -> str:
    """Return the text of a message, without its files."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def last_user(messages: Sequence[Json]) -> int:
    """Return the place of the user's last message; 0 where there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if _role(messages[at]) == "user"), 0)


def _members(text: str) -> tuple[dict[str, Json], Json, int]:
    """Return the members of an object but its messages, these, and where they begin; raises ValueError."""
    at = _blanks(text, 0)
    if text[at] != "{":
        raise ValueError("it is no object")
    fields: dict[str, Json] = {}
    messages, place = None, 0
    at = _blanks(text, at + 1)
    while text[at] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _blanks(text, at)
        if text[at] != ":":
            raise ValueError("a name without a value")
        at = _blanks(text, at + 1)
        value, end = _DECODER.raw_decode(text, at)
        if name == "messages":
            messages, place = value, at
        else:
            fields[name] = value
        at = _blanks(text, end)
        if text[at] != ",":
            break
        at = _blanks(text, at + 1)
    if text[at] != "}" or text[at + 1 :].strip():
        raise ValueError("it does not end as an object does")
    return fields, messages, place


def _blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _role(message: Json) -> str:
    return str(message.get("role", "")) if isinstance(message, dict) else ""


def _name(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _joined(content: Json, parts: Sequence[str], *, first: bool) -> Json:
    """Return the content of a message with more texts, which are `first` or last, in the form that it has."""
    if isinstance(content, list):
        added = [{"type": "text", "text": part} for part in parts]
        return [*added, *content] if first else [*content, *added]
    there = [content] if isinstance(content, str) and content.strip() else []
    return "\n\n".join([*parts, *there] if first else [*there, *parts])
