"""The HTTP server around the application, which waits for no client for long.

The one file that imports ``uvicorn``, inside its factory.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.service.limits import ServiceLimits

if TYPE_CHECKING:
    from uvicorn import Server
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
else:
    _Protocol = object  # uvicorn's class stands beside ours once it is imported

_BACKLOG = 2048
_GRACE_S = 1.0
"""Beyond the time of a body, so that the application answers before the connection is closed."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one. Raises SettingError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise SettingError(
            f"the service cannot listen on port {port} of {host!r}: {error}; choose another host or port"
        ) from error


def address_of(listener: socket.socket) -> str:
    """Return the URL of a socket that listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def open_server(app: Callable[..., Awaitable[None]], limits: ServiceLimits) -> Server:
    """Return a server that is to run with a socket; raises SettingError where a package is missing."""
    try:
        import uvicorn
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError as error:
        raise SettingError(
            "the service needs uvicorn and httptools; install them with: pip install 'pytest-tfgrpo[serve]'"
        ) from error

    config = uvicorn.Config(
        app,
        http=type("TimedProtocol", (_TimedProtocol, HttpToolsProtocol), {"limits": limits}),
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.keep_alive_s,
        timeout_graceful_shutdown=limits.drain_s,
    )
    return uvicorn.Server(config)


class _Timer:
    """Something that happens unless it is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        return self._handle is not None

    def start(self, time_s: float, act: Callable[[], object]) -> None:
        self.cancel()
        self._handle = self._loop.call_later(time_s, act)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None


class _TimedProtocol(_Protocol):
    """Closes a connection whose client is too slow with a head or a body, or to read its answers."""

    limits: ServiceLimits

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._reading = _Timer(self.loop)
        self._writing = _Timer(self.loop)
        self._head: int | None = None
        """Bytes of the head that is being read; None between heads."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio does this for listeners made with IPPROTO_TCP alone, and an answer waits 40 ms else
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reading.start(self.limits.head_s, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reading.cancel()
        super().connection_lost(exc)
        self._writing.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._reading.runs:
            self._reading.start(self.limits.head_s, self.transport.close)
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > self.limits.head_bytes:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._reading.start(self.limits.head_s, self.transport.close)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is not None:  # not what stands behind a body, which is no header of the request
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head = None
        self._reading.start(self.limits.body_s + _GRACE_S, self.transport.close)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._reading.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing.start(self.limits.body_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._writing.cancel()
        super().resume_writing()
