"""Streams: the events of a reply that a server only streams, put together as one completion."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.request_body import encoded

STREAM_ONLY = re.compile(
    r"(?:only|must|need|require|support)[^.]{0,40}\bstream(?:ing)?\b|\bstream(?:ing)?\b[^.]{0,40}"
    r"(?:must be|should be|set|is) (?:set )?(?:to )?true|non.?stream(?:ing)?\b[^.]{0,60}|enable the stream",
    re.IGNORECASE,
)
"""What a server says that answers by stream alone."""
NO_STREAM = re.compile(
    r"(?<!non-)(?<!non )(?<!non_)stream[^.]{0,60}(?:does not|not) support|does not support[^.]{0,20}stream",
    re.IGNORECASE,
)
TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


class BrokenStream(ValueError):
    """A stream that ended before the answer did."""


def asks_for_stream(words: str) -> bool:
    """Return whether a server's words say that it only streams."""
    words = words[:2_000]
    return STREAM_ONLY.search(words) is not None and NO_STREAM.search(words) is None


def by_stream(body: bytes) -> bytes:
    """Return a request, a JSON object, that requests the same by stream, with the usage at its end."""
    return encoded({**load_json(body), "stream": True, "stream_options": {"include_usage": True}})


def is_stream(body: bytes) -> bool:
    """Return whether the body of a reply is a stream, of events or of JSON lines, not one object."""
    head = body[:200].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith((b"data:", b"event:", b"id:", b"retry:", b":")) or _is_of_lines(body)


def _is_of_lines(body: bytes) -> bool:
    """Return whether a body is a stream in JSON lines: a chunk, and another object on a line of its own."""
    first, _, rest = body.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    return (
        first.startswith(b"{")
        and first.rstrip().endswith(b"}")
        and rest.lstrip()[:1] == b"{"
        and (b'"delta"' in first or b'"chat.completion.chunk"' in first)
    )


def put_together(body: bytes) -> bytes:
    """Return the completion that a stream amounts to, or the error that it holds; raises BrokenStream."""
    reply = _Streamed()
    for event in _lines(body) if _is_of_lines(body) else _events(body):
        if event == "[DONE]":
            reply.ended = True
            break
        reply.take(_object(event))
    return json.dumps(reply.body()).encode()


class _Streamed:
    """A reply so far."""

    def __init__(self) -> None:
        self.ended = False
        self._whole: dict[str, Any] = {}
        self._texts: defaultdict[str, list[str]] = defaultdict(list)
        self._parts: list[Json] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._older: dict[str, str] = {}
        self._choice: dict[str, Any] = {"index": 0, "finish_reason": None}

    def take(self, chunk: dict[str, Any]) -> None:
        """Take one event; one without choices may bring the usage, or an error."""
        kept = ("model", "usage", "id", "error", "base_resp", "message", "code", "object")
        self._whole |= {key: chunk[key] for key in kept if chunk.get(key) is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                named = ("finish_reason", "native_finish_reason", "error")
                self._choice |= {key: choice[key] for key in named if choice.get(key) is not None}
                self._add(choice.get("delta") or choice.get("message") or {})

    def _add(self, delta: Json) -> None:
        if not isinstance(delta, dict):
            raise BrokenStream("an event of the stream has no delta")
        for key in TEXTS:
            if isinstance(delta.get(key), str):
                self._texts[key].append(delta[key])
        if isinstance(delta.get("content"), list):
            self._parts += delta["content"]
        if isinstance(delta.get("function_call"), dict):
            _grow(self._older, delta["function_call"])
        calls = delta.get("tool_calls")
        for n, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                place = call.get("index", n)
                kept = self._calls.setdefault(place if type(place) is int else n, {})
                if isinstance(call.get("id"), str) and call["id"]:
                    kept["id"] = call["id"]
                _grow(kept, call.get("function"))

    def body(self) -> Json:
        """Return the completion; raises BrokenStream where its end did not come."""
        if "error" in self._whole or (not self._texts and "message" in self._whole):
            return {key: value for key, value in self._whole.items() if key != "usage"}
        if self._choice["finish_reason"] is None and not self.ended and "error" not in self._choice:
            raise BrokenStream("the stream ended before the answer did")
        message: dict[str, Json] = {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._parts:
            message["content"] = [*self._parts, {"type": "text", "text": message.get("content", "")}]
        if self._older:
            message["function_call"] = self._older
        if self._calls:
            message["tool_calls"] = [
                {"id": call.get("id"), "function": {key: call.get(key, "") for key in ("name", "arguments")}}
                for _, call in sorted(self._calls.items())
            ]
        return {**self._whole, "choices": [{**self._choice, "message": message}]}


def _grow(call: dict[str, str], more: Json) -> None:
    """Add a piece of a call: a name comes whole, its arguments in pieces."""
    if isinstance(more, dict):
        for key in ("name", "arguments"):
            piece = more.get(key)
            if isinstance(piece, dict):
                piece = json.dumps(piece, ensure_ascii=False)
            if isinstance(piece, str):
                call[key] = call.get(key, "") + piece


def _lines(body: bytes) -> Iterator[str]:
    """Yield each line of JSON lines that is not empty."""
    return filter(None, map(str.strip, body.decode("utf-8-sig", "replace").split("\n")))


def _events(body: bytes) -> Iterator[str]:
    """Yield the data of each event."""
    text = body.decode("utf-8-sig", "replace")
    data: list[str] = []
    for line in re.split(r"\r\n|\n|\r", text):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data).strip()
            data = []
    if data:
        yield "\n".join(data).strip()


def _object(event: str) -> dict[str, Any]:
    try:
        value = json.loads(event)
    except (ValueError, RecursionError):
        raise BrokenStream("an event of the stream is not JSON") from None
    if not isinstance(value, dict):
        raise BrokenStream("an event of the stream is no object")
    return value
