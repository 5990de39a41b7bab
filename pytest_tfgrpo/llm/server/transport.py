"""Transport: bytes to a server and back; the only file that imports ``pyreqwest``.

One client serves a whole run: it keeps connections, follows no redirect, reads no answer past its limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.llm.limits.waits import is_about_waiting

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.response import Response

    from pytest_tfgrpo.llm.server.keys import Secret


SETTLE_S = 0.05
"""The client's own threads let go of Python's objects a little after it was closed; an interpreter that ends
before that aborts, seen in 2 of 14 processes that did nothing else, and in none that waited."""


class Reply(NamedTuple):
    """What a server sent back."""

    status: int
    body: bytes
    """As far as the limit allowed."""
    cut: bool
    """There was more than the limit."""
    waits: Mapping[str, str]
    """Headers that may say how long to wait, by lower-case name."""
    location: str


class TransportError(Exception):
    """No reply arrived."""

    def __init__(self, message: str, *, sent: bool, late: bool = False) -> None:
        """`sent`: the server may have read the request, so that somebody pays for it; `late`: time was up."""
        super().__init__(message)
        self.sent = sent
        self.late = late


def require_client() -> None:
    """Raise SettingError, which names the extra to install, when there is no HTTP client."""
    try:
        import pyreqwest.client  # noqa: F401
    except ImportError as error:
        raise SettingError(
            "language models need an HTTP client; install it with: pip install 'pytest-tfgrpo[openai]'"
        ) from error


class Transport:
    """Sends requests; to be used on one event loop."""

    def __init__(self) -> None:
        self._clients: dict[bool, Client] = {}

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, Secret],
        body: bytes | None,
        *,
        timeout_s: float,
        max_bytes: int,
        direct: bool,
    ) -> Reply:
        """Send a request and return the reply; `direct` goes past proxies. Raises TransportError.

        The client itself keeps the time limit: a request that it sends outlives a cancelled task.
        """
        from pyreqwest.exceptions import ConnectError, PyreqwestError, RequestTimeoutError

        limit = timedelta(seconds=timeout_s)
        builder = self._client(direct).request(method, url).timeout(limit)
        if body is not None:
            builder = builder.body_bytes(body)
        for name, value in headers.items():
            builder = builder.header(name, value.reveal(), is_sensitive=True)
        try:
            async with builder.build_streamed() as response:
                data, cut = await _read(response, max_bytes)
                return Reply(
                    response.status,
                    data,
                    cut,
                    _about_waiting(response),
                    response.get_header("location") or "",
                )
        except RequestTimeoutError as error:  # also one that is called a timeout of connecting
            raise TransportError(_causes(error), sent=True, late=True) from None
        except ConnectError as error:
            raise TransportError(_causes(error), sent=False) from None
        except PyreqwestError as error:
            raise TransportError(_causes(error), sent=True) from None

    def _client(self, direct: bool) -> Client:
        """Return the one client for direct, or for all other, connections."""
        client = self._clients.get(direct)
        if client is None:
            from pyreqwest.client import ClientBuilder

            builder = ClientBuilder().follow_redirects(False).referer(False).user_agent("pytest-tfgrpo")
            client = (builder.no_proxy() if direct else builder).build()
            self._clients[direct] = client
        return client

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()
        if clients:
            await asyncio.sleep(SETTLE_S)


async def _read(response: Response, max_bytes: int) -> tuple[bytes, bool]:
    """Return the body, at most `max_bytes` of it, and whether there was more."""
    reader, chunks, size = response.body_reader, [], 0
    while (chunk := await reader.read_chunk()) is not None:
        size += len(chunk)
        chunks.append(chunk.to_bytes())
        if size > max_bytes:
            return b"".join(chunks)[:max_bytes], True
    return b"".join(chunks), False


def _about_waiting(response: Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items() if is_about_waiting(name.lower())}


def _causes(error: Exception) -> str:
    """Return what went wrong, in the words of the innermost cause."""
    details = getattr(error, "details", None) or {}
    causes = [str(cause["message"]) for cause in details.get("causes") or ()]
    return causes[-1] if causes else str(getattr(error, "message", error))
