"""Bodies of requests, unpacked within a limit, and why a request is refused."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import MappingProxyType

_WINDOWS = MappingProxyType({"gzip": 31, "x-gzip": 31, "deflate": 15})


class RefusedRequest(Exception):
    """A request is answered with `status`, its message, and `headers`."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def too_large(limit: int) -> RefusedRequest:
    """Return the refusal of a body beyond a limit in bytes."""
    headers = {"Connection": "close"}  # it may still be on its way
    return RefusedRequest(413, f"the body has more than {limit:,} bytes; send less at once", headers)


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its ``Content-Encoding``; raises RefusedRequest.

    No more than `limit` bytes are ever unpacked, whatever a few bytes promise to become.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in _WINDOWS:
        raise RefusedRequest(
            415, f"the content encoding {encoding[:40]!r} is not known; use gzip, deflate or none"
        )
    unpacker = zlib.decompressobj(_WINDOWS[encoding])
    try:
        whole = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise RefusedRequest(400, f"the body is not {encoding}: {error}") from error
    if len(whole) > limit:
        raise too_large(limit)
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedRequest(
            400, f"the body is not one {encoding} stream: it ends early, or goes on after its end"
        )
    return whole
