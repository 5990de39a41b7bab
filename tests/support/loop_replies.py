"""A service that answers as a test says, and keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedService:
    """Answers requests with the statuses of `replies` in turn, and then with 200."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, dict[str, Any]]] = []
        self.requests: list[tuple[str, list[Any]]] = []
        """Path and payloads of each."""
        self.headers: list[dict[str, str]] = []
        self.poison: Any = None
        """A payload whose batch is answered with 400."""
        self.open = threading.Event()
        """Requests wait for it."""
        self.open.set()
        self.url = ""

    @property
    def taken(self) -> list[Any]:
        """The payloads of all requests."""
        return [one for _, several in self.requests for one in several]

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Keep a request, and return status and body of its answer."""
        self.open.wait(100)
        payloads = json.loads(body)
        self.headers.append(headers)
        if self.poison is not None and self.poison in payloads:
            return 400, {"error": "poison"}
        status, said = self.replies.pop(0) if self.replies else (200, {})
        if status == 200:
            self.requests.append((path, payloads))
        return status, said


@contextmanager
def scripted_service() -> Iterator[ScriptedService]:
    """Run a service on the loopback address."""
    script = ScriptedService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, said = script.answer(self.path, dict(self.headers), body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *parts: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield script
    finally:
        script.open.set()
        server.shutdown()
        server.server_close()
        thread.join()
