"""Answers to requests, among them those of OTLP/HTTP in JSON and protobuf.

https://opentelemetry.io/docs/specs/otlp/#otlphttp-response; the messages are two fields each, so they are
written here field by field.
"""

from __future__ import annotations

import json

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.otlp.otlp import OtlpForm

JSON_TYPE, PROTOBUF_TYPE = "application/json", "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, body and its type."""

    status: int
    body: bytes
    media_type: str = JSON_TYPE


def json_answer(status: int, value: Json) -> HttpAnswer:
    """Return an answer with a value as JSON."""
    return HttpAnswer(status, json.dumps(value).encode("ascii"))


def otlp_answer(form: OtlpForm, items: str, rejected: int, message: str) -> HttpAnswer:
    """Return the answer to an export request, partial where `rejected` is not 0.

    `items` names what was sent as OTLP does: ``Spans`` or ``LogRecords``.
    """
    if form == "json":
        partial = {f"rejected{items}": str(rejected), "errorMessage": message}
        return json_answer(200, {"partialSuccess": partial} if rejected else {})
    partial_bytes = b"\x08" + _varint(rejected) + _text(2, message)
    body = b"\x0a" + _varint(len(partial_bytes)) + partial_bytes if rejected else b""
    return HttpAnswer(200, body, PROTOBUF_TYPE)


def otlp_status(form: OtlpForm, status: int, message: str) -> HttpAnswer:
    """Return an answer whose body is a ``google.rpc.Status`` with the message alone."""
    if form == "json":
        return json_answer(status, {"message": message})
    return HttpAnswer(status, _text(2, message), PROTOBUF_TYPE)


def _text(field: int, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
