"""The model server behind the proxy; the one file of the room that imports ``pyreqwest``.

Bodies pass as they are, packed or not. No redirect is followed, and nothing is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.service.limits import is_loopback

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.http import HeaderMap
    from pyreqwest.request import StreamRequest
    from pyreqwest.response import Response

CONNECT_S = 10.0
SILENT_S = 600.0
"""Without a byte from the server; models think for minutes."""
_SETTLE_S = 0.05
"""The client's own threads let go of Python's objects a little after it was closed."""
Headers = Sequence[tuple[str, str]]


class UpstreamRequest(NamedTuple):
    """What is sent."""

    method: str
    path: str
    """Behind the base URL, with its query."""
    headers: Headers
    body: bytes | AsyncIterator[bytes]


class UpstreamFault(Exception):
    """The server cannot be reached, is silent, or cuts its answer."""

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


class UpstreamAnswer:
    """What comes back, its body as it arrives; to be ended in any case."""

    def __init__(self, request: StreamRequest, response: Response) -> None:
        self._request, self._reader = request, response.body_reader
        self.status: int = response.status
        self.headers: Headers = _headers(response.headers)

    async def read(self) -> bytes | None:
        """Return what came next of the body, None at its end; raises UpstreamFault where it is cut."""
        from pyreqwest.exceptions import PyreqwestError

        try:
            chunk = await self._reader.read_chunk()
        except PyreqwestError as error:
            raise _fault(error) from None
        return None if chunk is None else bytes(chunk)

    async def end(self) -> None:
        """Let go of the answer; one that still arrives is cut off."""
        await self._request.__aexit__(None, None, None)


class Upstream:
    """A model server; for one event loop."""

    def __init__(self, base_url: str) -> None:
        self._base = base_url
        self._client: Client | None = None

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        """Send a request, and return the answer once it begins; raises UpstreamFault.

        The client finishes to send a request, and to wait for its answer, also where this is cancelled; then
        it cuts the answer off.
        """
        from pyreqwest.exceptions import PyreqwestError

        try:
            builder = self._opened().request(request.method, self._base + request.path)
            builder = builder.headers(request.headers).streamed_read_buffer_limit(0)
            if not isinstance(request.body, bytes):
                builder = builder.body_stream(request.body)
            elif request.body:
                builder = builder.body_bytes(request.body)
            sent = builder.build_streamed()
            return UpstreamAnswer(sent, await sent.__aenter__())
        except (PyreqwestError, ValueError) as error:
            raise _fault(error) from None

    def _opened(self) -> Client:
        if self._client is None:
            from pyreqwest.client import ClientBuilder

            builder = ClientBuilder().follow_redirects(False).referer(False)
            builder = builder.gzip(False).brotli(False).zstd(False).deflate(False)
            if is_loopback(urlsplit(self._base).hostname or ""):
                builder = builder.no_proxy()
            builder = builder.connect_timeout(timedelta(seconds=CONNECT_S))
            self._client = builder.read_timeout(timedelta(seconds=SILENT_S)).build()
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await asyncio.sleep(_SETTLE_S)


def require_client() -> None:
    """Raise SettingError where the extra is missing."""
    try:
        import pyreqwest.client  # noqa: F401
    except ImportError as error:
        raise SettingError(
            "the proxy needs an HTTP client; install it with: pip install 'pytest-tfgrpo[serve,openai]'"
        ) from error


def _headers(found: HeaderMap) -> Headers:
    """Return headers but those whose values are no ASCII, which the client cannot read."""
    try:
        return list(found.items())
    except ValueError:
        kept = []
        for name in dict.fromkeys(found):
            with suppress(ValueError):
                kept += [(name, value) for value in found.getall(name)]
        return kept


def _fault(error: Exception) -> UpstreamFault:
    """Return what went wrong, in the words of the innermost cause: others name the URL."""
    details = getattr(error, "details", None) or {}
    causes = [str(cause["message"]) for cause in details.get("causes") or ()]
    late = "Timeout" in type(error).__name__
    return UpstreamFault(causes[-1] if causes else type(error).__name__, late=late)
