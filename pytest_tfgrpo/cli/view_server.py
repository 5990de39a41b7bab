"""Pages on loopback: whoever knows the token in the address gets an answer, and nobody else."""

from __future__ import annotations

import errno
import io
import secrets
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import SettingError

HOST = "127.0.0.1"
AT_ONCE = 16
"""Requests that are answered at a time; for one more, who has said nothing for longest must go."""
GIVES_WAY_S = 1.0
"""How long it may take until a connection that was closed has given up its place."""
PATIENCE_S = 10
"""How long a client may take to send its request."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer; a page brings its own policy besides."""


class WebAnswer(NamedTuple):
    """What a request gets."""

    kind: str
    """Media type, without charset: all are UTF-8."""
    body: bytes


Site: TypeAlias = Callable[[str], WebAnswer | None]
"""Answers a name below the address: empty for the page itself; None where there is nothing."""


class PageServer(socketserver.ThreadingTCPServer):
    """Serves a site on loopback, to those who know its token."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: Site, port: int = 0) -> None:
        """Listen on `port`, on any free one for 0; raises SettingError where that cannot be."""
        self.site = site
        self.token = secrets.token_urlsafe(32)
        self._invitation: str | None = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._silent: dict[Any, None] = {}
        """Connections by age on which no whole request has come yet."""
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise SettingError(
                f"port {port} of {HOST} {what}; name another with --port, or none to get a free one"
            ) from error

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    @property
    def invitation(self) -> str:
        """An address that leads to the page once: others on this machine can see a browser's arguments."""
        return f"http://{HOST}:{self.server_address[1]}/{self._invitation}/"

    def is_own(self, host: str | None) -> bool:
        """Return whether a request is to this machine: a foreign name that leads here is an attack."""
        return (host or "").partition(":")[0] in (HOST, "localhost")

    def knows(self, token: str) -> bool:
        """Return whether a token is that of the address; takes the same time for every wrong one."""
        return compare_digest(token.encode(), self.token.encode())

    def redeem(self, token: str) -> bool:
        """Return whether a token is the invitation, which is used up by that."""
        with self._lock:
            wanted = self._invitation
            if wanted is None or not compare_digest(token.encode(), wanted.encode()):
                return False
            self._invitation = None
            return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close the connection where too many are answered."""
        if not self._free.acquire(blocking=False) and not self._has_made_room():
            self.shutdown_request(request)
            return
        with self._lock:
            self._silent[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.heard(request)
            self._free.release()
            raise

    def _has_made_room(self) -> bool:
        """Close the connection that sent nothing for longest; return whether that gave a place."""
        with self._lock:
            oldest = next(iter(self._silent), None)
            if oldest is None:
                return False
            del self._silent[oldest]
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        return self._free.acquire(timeout=GIVES_WAY_S)

    def heard(self, request: Any) -> None:
        """Note that a client has sent a request, or gone."""
        with self._lock:
            self._silent.pop(request, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.heard(request)
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that left or took too long; anything else is a bug."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Request(socket.SocketIO):
    """What a client sends, all of it within one time limit, however slowly it drips."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, "r")
        self._connection = connection
        self._end = time.monotonic() + PATIENCE_S

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the client takes too long to ask")
        self._connection.settimeout(left)
        return super().readinto(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    rfile: io.BufferedReader
    timeout = PATIENCE_S
    server_version = "tfgrpo"
    sys_version = ""

    def setup(self) -> None:
        """Read the request within the time limit."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Request(self.connection))

    def do_GET(self) -> None:
        """Answer who knows the token."""
        self.server.heard(self.request)
        _, token, name = [*self.path.split("/", 2), "", ""][:3]
        if not self.server.is_own(self.headers.get("Host")) or self.path.count("/") < 2:
            self._refuse()
        elif self.server.knows(token):
            found = self.server.site(name)
            self._refuse() if found is None else self._send(HTTPStatus.OK, found)
        elif not name and self.server.redeem(token):
            self._send(HTTPStatus.SEE_OTHER, WebAnswer("text/plain", b""), Location=f"/{self.server.token}/")
        else:
            self._refuse()

    def _refuse(self) -> None:
        self._send(HTTPStatus.NOT_FOUND, WebAnswer("text/plain", b"not found\n"))

    def _send(self, status: HTTPStatus, answer: WebAnswer, **more: str) -> None:
        self.connection.settimeout(PATIENCE_S)
        self.send_response(status)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def send_error(self, code: int, *_: object, **__: object) -> None:
        """Answer what is no request for a page; the request is not repeated."""
        self._send(HTTPStatus(code), WebAnswer("text/plain", b"not understood\n"))

    def log_message(self, *_: object) -> None:
        """Keep the terminal quiet."""


def serve(server: PageServer) -> threading.Thread:
    """Start to answer; returns the thread that does."""
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="tfgrpo-view", daemon=True)
    thread.start()
    return thread
