"""Spans in the wire format of OTLP 1 (protobuf), written without its library.

A span of the SDK takes 50 microseconds to make and to encode, these take 5: a run has tens of thousands.
Field numbers are those of ``opentelemetry/proto/trace/v1/trace.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct, pack
from typing import TypeAlias

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
INTERNAL, CLIENT = 1, 3
"""Kinds of span."""
_ERROR = b"\x18\x02"
_STAMP = Struct("<Q").pack
_FLOAT = Struct("<d").pack
_KIND_AND_TIMES = Struct("<BBBQBQ").pack
_SAMPLED = pack("<BBI", 0x85, 0x01, 0x101)
"""Flags: sampled, and it is known whether the parent is remote (it is not)."""


@lru_cache(maxsize=8192)
def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _field(tag: bytes, body: bytes) -> bytes:
    return tag + _varint(len(body)) + body


@lru_cache(maxsize=4096)
def _text(tag: bytes, text: str) -> bytes:
    """Return a text that comes often as a field."""
    return _field(tag, text.encode("utf-8", "replace"))


def _value(value: AttributeValue) -> bytes:
    """Return an AnyValue; what UTF-8 cannot hold becomes a question mark."""
    if isinstance(value, str):
        return _field(b"\x0a", value.encode("utf-8", "replace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, float):
        return pack("<Bd", 0x21, value)
    return _field(b"\x2a", b"".join(_field(b"\x0a", _value(item)) for item in value))


@lru_cache(maxsize=256)
def _before_float(key: str, tag: bytes) -> bytes:
    """Return an attribute up to the eight bytes of its value."""
    return attribute(key, 0.5, tag)[:-8]


def measure(key: str, value: float) -> bytes:
    """Return an attribute of a span whose value is a float, seldom the same."""
    return _before_float(key, b"\x4a") + _FLOAT(value)


def attribute(key: str, value: AttributeValue, tag: bytes = b"\x4a") -> bytes:
    """Return an attribute as a field of a span, or of what has its attributes under another `tag`."""
    return _field(tag, _text(b"\x0a", key) + _field(b"\x12", _value(value)))


@lru_cache(maxsize=4096)
def common(key: str, value: AttributeValue, kind: type, tag: bytes = b"\x4a") -> bytes:  # noqa: ARG001
    """Return an attribute whose value comes often; `kind` is its type, since 1 == 1.0 == True."""
    return attribute(key, value, tag)


def attributes(values: Mapping[str, AttributeValue | None]) -> bytes:
    """Return the attributes of a span; those that are None are left out."""
    return b"".join(attribute(key, value) for key, value in values.items() if value is not None)


def event_parts(name: str, values: Mapping[str, AttributeValue]) -> tuple[bytes, bytes]:
    """Return an event as a field of a span, up to its time, which `stamp` returns, and from there on."""
    told = (attribute(key, value, b"\x1a") for key, value in values.items())
    after = _text(b"\x12", name) + b"".join(told)
    return b"\x5a" + _varint(9 + len(after)) + b"\x09", after


def stamp(at_ns: int) -> bytes:
    """Return the time of an event."""
    return _STAMP(at_ns)


def error_status(message: str) -> bytes:
    """Return the status of a span that ended in an error, as a field of it."""
    return _field(b"\x7a", (_field(b"\x12", message.encode("utf-8", "replace")) if message else b"") + _ERROR)


def span(
    trace: bytes,
    identity: bytes,
    parent: bytes,
    name: str,
    start_ns: int,
    end_ns: int,
    *rest: bytes,
    kind: int = INTERNAL,
) -> bytes:
    """Return a sampled span as a field of ScopeSpans; `rest` are its attributes, events and status."""
    ids = b"\x0a\x10%b\x12\x08%b" % (trace, identity)
    above = b"\x22\x08" + parent if parent else b""
    times = _KIND_AND_TIMES(0x30, kind, 0x39, start_ns, 0x41, end_ns)
    body = b"".join((ids, above, _text(b"\x2a", name), times, *rest, _SAMPLED))
    return b"\x12" + _varint(len(body)) + body


def envelope(resource: Mapping[str, AttributeValue], scope: str, version: str) -> tuple[bytes, bytes]:
    """Return resource and scope of all spans of a run, as `request` takes them."""
    described = b"".join(attribute(key, value, b"\x0a") for key, value in resource.items())
    named = _field(b"\x0a", scope.encode()) + _field(b"\x12", version.encode())
    return _field(b"\x0a", described), _field(b"\x0a", named)


def request(shared: tuple[bytes, bytes], spans: Iterable[bytes]) -> bytes:
    """Return an ExportTraceServiceRequest with `spans`, whose `shared` part `envelope` returns."""
    resource, scope = shared
    return _field(b"\x0a", resource + _field(b"\x12", scope + b"".join(spans)))
