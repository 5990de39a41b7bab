"""What passed as spans: a call of a model, and the run of an agent that its answer ends."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.serving.chat_body import ChatBody, last_user
from pytest_tfgrpo.production.serving.run_traces import GoingRun
from pytest_tfgrpo.telemetry.traces.turns import MARK, TraceSpan

AGENT = "proxied"
"""Name of an agent in a request without a domain."""
LARGEST_ANSWER = 8 << 20
"""Bytes of an answer that are kept to be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatExchange:
    """A chat completion that passed."""

    chat: ChatBody
    session: str
    """Empty where the client names none."""
    version: str
    """The one that was served."""
    lessons: tuple[str, ...]
    domain: str
    run: GoingRun
    span: str
    """Id of the call's own span."""
    ends_run: bool
    start_ns: int
    end_ns: int
    status: int
    """Of HTTP; 0: no answer came."""
    answer: bytes
    """Its body, unpacked, as far as it came."""
    error: str = ""
    """Why it is not whole."""


def unpacked(data: bytes, encoding: str) -> bytes:
    """Return a body without its encoding, as far as it is whole; empty for one that is not known."""
    if encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return b""
    try:
        return zlib.decompressobj(47).decompress(data, LARGEST_ANSWER)
    except zlib.error:
        return b""


def spans_of(exchange: ChatExchange) -> list[TraceSpan]:
    """Return the span of a call, and that of its run where the call ends it."""
    run, chat = exchange.run, exchange.chat
    found = _answer(exchange.answer)
    shared = _shared(exchange)
    error = exchange.error or _refusal(exchange.status, found)
    asked = [_without_files(one) for one in chat.messages[last_user(chat.messages) :]]
    said = found.get("message")
    attributes = {
        **shared,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": chat.fields.get("model"),
        "gen_ai.request.temperature": chat.fields.get("temperature"),
        "gen_ai.response.model": found.get("model"),
        "gen_ai.response.id": found.get("id"),
        "gen_ai.usage.input_tokens": found.get("usage", {}).get("prompt_tokens"),
        "gen_ai.usage.output_tokens": found.get("usage", {}).get("completion_tokens"),
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([said]) if said else None,
    }
    call = _span(exchange, exchange.span, run.agent, "chat", attributes, error)
    if not exchange.ends_run:
        return [call]
    attributes = {
        **shared,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": exchange.domain or AGENT,
    }
    return [call, _span(exchange, run.agent, "", "invoke_agent", attributes, "", start_ns=run.start_ns)]


def _span(
    exchange: ChatExchange,
    span: str,
    parent: str,
    name: str,
    attributes: Mapping[str, Json],
    error: str,
    *,
    start_ns: int = 0,
) -> TraceSpan:
    return TraceSpan(
        key=(exchange.run.trace, span),
        parent=parent,
        name=name,
        start_ns=start_ns or exchange.start_ns,
        end_ns=exchange.end_ns,
        attributes={key: value for key, value in attributes.items() if value not in (None, "")},
        failed=bool(error),
        message=error,
        place="proxy",
    )


def _shared(exchange: ChatExchange) -> dict[str, Json]:
    """Return what both spans say: whose run it is, what was served, and what the client noted."""
    metadata = exchange.chat.metadata
    notes = {key: value for key, value in metadata.items() if key.startswith(MARK)}
    return {
        **notes,
        "session.id": exchange.session,
        "user.id": exchange.chat.user or exchange.chat.fields.get("safety_identifier"),
        f"{MARK}policy_version": exchange.version,
        f"{MARK}lessons": json.dumps(exchange.lessons) if exchange.lessons else None,
    }


def _refusal(status: int, found: Mapping[str, Json]) -> str:
    """Return why an answer is none; empty where it is one."""
    if status == 200 and "message" in found:
        return ""
    error = found.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return f"HTTP {status}" + (f": {said}" if isinstance(said, str) else "")


def _answer(body: bytes) -> dict[str, Json]:
    """Return the message of an answer, streamed or not, and what stands beside it."""
    try:
        found = load_json(body)
    except ValueError:
        return _joined(_events(body))
    return _whole(found) if isinstance(found, dict) else {}


def _whole(found: Mapping[str, Json]) -> dict[str, Json]:
    kept = _beside(found)
    choice = _first(found)
    if isinstance(choice.get("message"), dict):
        kept["message"] = choice["message"]
    return kept


def _joined(events: Iterator[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the message that the parts of a stream amount to, the first choice alone."""
    kept: dict[str, Json] = {}
    texts: list[str] = []
    calls: dict[int, dict[str, Json]] = {}
    for event in events:
        kept |= _beside(event)
        delta = _first(event).get("delta")
        if not isinstance(delta, dict):
            continue
        kept["message"] = {"role": "assistant"}
        if isinstance(delta.get("content"), str):
            texts.append(delta["content"])
        parts = delta.get("tool_calls")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                _add_call(calls, part)
    if "message" in kept:
        kept["message"] |= {"content": "".join(texts) or None}
        if calls:
            kept["message"]["tool_calls"] = [calls[at] for at in sorted(calls)]
    return kept


def _add_call(calls: dict[int, dict[str, Json]], part: Mapping[str, Json]) -> None:
    at = part.get("index")
    call = calls.setdefault(at if isinstance(at, int) else 0, {"type": "function", "function": {}})
    if isinstance(part.get("id"), str):
        call["id"] = part["id"]
    function = part.get("function")
    for key, value in function.items() if isinstance(function, dict) else ():
        if isinstance(value, str):
            call["function"][key] = call["function"].get(key, "") + value


def _events(body: bytes) -> Iterator[Mapping[str, Json]]:
    """Yield the data of server-sent events that are objects."""
    for line in body.splitlines():
        if not line.startswith(b"data:"):
            continue
        try:
            found = load_json(line[5:])
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _beside(found: Mapping[str, Json]) -> dict[str, Json]:
    kept = {key: found[key] for key in ("id", "model", "error") if found.get(key)}
    return kept | ({"usage": found["usage"]} if isinstance(found.get("usage"), dict) else {})


def _first(found: Mapping[str, Json]) -> Mapping[str, Json]:
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and first.get("index", 0) == 0 else {}


def _without_files(message: Json) -> Json:
    """Return a message with the texts among its parts alone; pictures are no texts."""
    parts: Sequence[Json] | None = message.get("content") if isinstance(message, dict) else None
    if not isinstance(parts, list):
        return message
    return {
        **message,
        "content": [one for one in parts if isinstance(one, dict) and one.get("type") == "text"],
    }
