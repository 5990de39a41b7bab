"""A real OTLP/HTTP receiver on loopback, and the spans that it was sent."""

from __future__ import annotations

import gzip
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

UNPACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    """A span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for the root."""
    kind: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]
    """Name, time and attributes."""
    failed: bool
    message: str
    sampled: bool
    resource: dict[str, Any]
    scope: str

    def __getitem__(self, key: str) -> Any:
        return self.attributes[key]

    def scores(self) -> dict[str, dict[str, Any]]:
        """Return the results of evaluation by name, without the prefix of their attributes."""
        prefix = "gen_ai.evaluation."
        found = [
            {key.removeprefix(prefix): value for key, value in values.items()}
            for name, _, values in self.events
            if name == f"{prefix}result"
        ]
        return {values.pop("name"): values for values in found}


@dataclass(kw_only=True)
class Conduct:
    """How the receiver answers."""

    status: int = 200
    delay_s: float = 0.0
    rejected: int = 0
    """Spans of each request that it says to have rejected."""
    body: bytes | None = None
    """Sent in place of an answer."""
    content_type: str = "application/x-protobuf"
    raw: bytes | None = None
    """Sent in place of HTTP."""
    silent: bool = False
    """Never answer."""
    failures: int | None = None
    """So many requests are answered with `status` before all is well; None: all."""


@dataclass
class Collector:
    """The receiver; to be used in a ``with`` statement."""

    conduct: Conduct = field(default_factory=Conduct)
    tls: tuple[Path, Path] | None = None
    """Certificate and key."""

    def __post_init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        """Of each request, with names in lower case."""
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        """Of the requests that were answered well."""
        self._released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                collector._take(self)

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *args: object) -> None:
                """Say nothing of a client that hung up."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' * bool(self.tls)}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        body = UNPACK.get(handler.headers.get("Content-Encoding", ""), bytes)(body)
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        self.paths.append(handler.path)
        conduct = self.conduct
        self._released.wait(None if conduct.silent else conduct.delay_s)
        if conduct.silent:
            return
        if conduct.raw is not None:
            handler.wfile.write(conduct.raw)
            handler.close_connection = True
            return
        status = 200 if conduct.failures == 0 else conduct.status
        if conduct.failures:
            conduct.failures -= 1
        if status == 200 and conduct.body is None:
            self.bodies.append(body)
        partial = ExportTracePartialSuccess(rejected_spans=conduct.rejected)
        answer = ExportTraceServiceResponse(partial_success=partial if conduct.rejected else None)
        data = answer.SerializeToString() if conduct.body is None else conduct.body
        handler.send_response(status)
        handler.send_header("Content-Type", conduct.content_type)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    @property
    def spans(self) -> list[ReceivedSpan]:
        """All spans, in the order of their arrival."""
        return [span for body in self.bodies for span in decoded(body)]

    def named(self, start: str) -> list[ReceivedSpan]:
        """Return the spans whose name starts so, by their start."""
        return sorted((s for s in self.spans if s.name.startswith(start)), key=lambda s: s.start_ns)


def decoded(body: bytes) -> Iterator[ReceivedSpan]:
    """Yield the spans of an ExportTraceServiceRequest."""
    for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield ReceivedSpan(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    kind=span.kind,
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    attributes=_plain(span.attributes),
                    events=[(e.name, e.time_unix_nano, _plain(e.attributes)) for e in span.events],
                    failed=span.status.code == 2,
                    message=span.status.message,
                    sampled=bool(span.flags & 1),
                    resource=_plain(resource_spans.resource.attributes),
                    scope=scope_spans.scope.name,
                )


def _plain(attributes: Any) -> dict[str, Any]:
    pairs: list[KeyValue] = list(attributes)
    assert len({pair.key for pair in pairs}) == len(pairs), f"an attribute twice: {pairs}"
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    if value.WhichOneof("value") == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, str(value.WhichOneof("value")))
