"""Fingerprints: the request to a model as one stamp and as text."""

from __future__ import annotations

from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.llm.protocol import Completer, Message, Request


def fingerprint(completer: Completer, request: Request) -> str:
    """Return the stamp of a model and its input: everything that its answer can depend on."""
    return stamp(
        {"model": completer.name, "identity": dict(completer.identity), "request": request_wire(request)}
    )


def request_wire(request: Request) -> dict[str, Json]:
    """Return a request as JSON values, pictures as digests, without its time limit."""
    return {
        "messages": [_message(message) for message in request.messages],
        "temperature": request.temperature,
        "seed": request.seed,
        "max_tokens": request.max_tokens,
        "tools": to_wire(request.tools),
        "schema": to_wire(request.schema),
    }


def text_of(request: Request) -> str:
    """Return the messages of a request for a reader."""
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in request.messages)


def _message(message: Message) -> dict[str, Json]:
    return {
        "role": message.role,
        "content": message.content,
        "images": [[image.media_type, stamp_bytes(image.data)] for image in message.images],
        "tool_calls": to_wire(message.tool_calls),
        "tool_call_id": message.tool_call_id,
    }
