"""A receiver of OTLP/HTTP on loopback: programs send their spans to it, each to an address of its own.

The address has a random part that only the rollout's program gets, so that no other process can write into a
rollout. What comes is kept as it is, within limits, and read when the program has ended.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from pytest_tfgrpo.core.python.threads import start_thread
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

if TYPE_CHECKING:
    from pytest_tfgrpo.telemetry.traces.otlp.otlp import OtlpForm

BODY_BYTES = 16 * 2**20
"""Of one request."""
ROLLOUT_BYTES = 64 * 2**20
"""Of all requests of a rollout."""
HEAD_BYTES = 16 * 2**10
CONNECTIONS = 512
REQUEST_S = 30.0
"""A request that takes longer is given up, as is a connection on which none comes."""
SETTLE_S = 0.25
"""How long a request that has begun is waited for when the program has ended."""
REMEMBERED = 10_000
"""Rollouts whose late spans, and those sent as of another one, are known as such."""
FORMS: dict[str, OtlpForm] = {"application/json": "json", "application/x-protobuf": "protobuf"}
_Value = TypeVar("_Value")
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 411: "Length Required",
            413: "Content Too Large", 415: "Unsupported Media Type"}  # fmt: skip


class SpanRequest(NamedTuple):
    """One request of a program."""

    signal: Literal["traces", "logs"]
    form: OtlpForm
    body: bytes


@dataclass(kw_only=True, slots=True, eq=False)
class Inbox:
    """What the program of one rollout has sent."""

    token: str
    trace: str
    """Id of the trace that the program receives."""
    run: SpanCounts
    requests: list[SpanRequest] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why requests were refused."""
    size: int = 0
    begun: int = 0
    """Requests that are being read."""

    def refuse(self, reason: str) -> None:
        """Count a request that is not kept; it may have had any number of spans."""
        if len(self.refused) < REMEMBERED:
            self.refused.append(reason)


class SpanReceiver:
    """Receives for all rollouts of the process, on a thread of its own."""

    def __init__(self) -> None:
        self._open: dict[str, Inbox] = {}
        self._closed: dict[str, SpanCounts] = {}
        self._owners: dict[str, str] = {}
        """Tokens by the traces that their programs received."""
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        start_thread(partial(self._serve, ready), "tfgrpo-spans")
        ready.wait()

    def open(self, run: SpanCounts) -> Inbox:
        """Return an inbox for a rollout."""
        inbox = Inbox(token=secrets.token_urlsafe(16), trace=secrets.token_hex(16), run=run)
        self._open[inbox.token] = inbox
        _remember(self._owners, inbox.trace, inbox.token)
        return inbox

    def close(self, inbox: Inbox) -> None:
        """Take nothing more for a rollout."""
        if self._open.pop(inbox.token, None) is not None:
            _remember(self._closed, inbox.token, inbox.run)

    def owner(self, trace: str) -> str | None:
        """Return the token of the rollout that received a trace; None for one that a program made."""
        return self._owners.get(trace)

    async def settle(self, inbox: Inbox) -> None:
        """Wait a little for requests that have begun; called on any loop."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._settle(inbox), self._loop))

    async def _settle(self, inbox: Inbox) -> None:
        end = self._loop.time() + SETTLE_S
        for _ in range(3):  # accepted, read, handled
            await asyncio.sleep(0)
        while inbox.begun and self._loop.time() < end:
            await asyncio.sleep(0.005)

    def _serve(self, ready: threading.Event) -> None:
        async def listen() -> None:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=HEAD_BYTES)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        try:
            self._loop.run_until_complete(listen())
        except OSError:  # no loopback here: programs get no address
            ready.set()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            while self._connections <= CONNECTIONS:
                async with asyncio.timeout(REQUEST_S):
                    status = await self._request(reader)
                    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
                    body = "{}" if status == 200 else ""
                    last = "" if status == 200 else "Connection: close\r\n"
                    writer.write(f"{head}{last}Content-Length: {len(body)}\r\n\r\n{body}".encode())
                    await writer.drain()
                if last:
                    return
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            return  # the client is gone, or is none
        finally:
            self._connections -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> int:
        """Read one request; returns the status to answer with."""
        start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, _, rest = start.partition(" ")
        target, _, version = rest.partition(" ")
        if method != "POST" or not version.startswith("HTTP/1."):
            return self._foreign(400)
        _, token, path = [*target.split("/", 2), "", ""][:3]
        inbox = self._open.get(token)
        if inbox is None:
            if (run := self._closed.get(token)) is None:
                return self._foreign(404)
            run.count("late")
            return 404
        inbox.begun += 1
        try:
            headers = {k.strip().lower(): v.strip() for k, _, v in (one.partition(":") for one in lines)}
            return await self._body(inbox, path, headers, reader)
        finally:
            inbox.begun -= 1

    async def _body(
        self, inbox: Inbox, path: str, headers: dict[str, str], reader: asyncio.StreamReader
    ) -> int:
        length = headers.get("content-length", "")
        form = FORMS.get(headers.get("content-type", "").partition(";")[0].strip().lower())
        if not (length.isascii() and length.isdigit() and len(length) < 20):
            inbox.refuse("no_length")
            return 411
        if int(length) > BODY_BYTES or inbox.size + int(length) > ROLLOUT_BYTES:
            inbox.refuse("too_large")
            return 413
        inbox.size += int(length)
        try:
            body = await reader.readexactly(int(length))
        except BaseException:
            inbox.refuse("cut_off")
            raise
        signal = path.removeprefix("v1/")
        if signal == "metrics":  # belong to no frame
            return 200
        if signal not in ("traces", "logs"):
            inbox.refuse("unknown_path")
            return 404
        if form is None or headers.get("content-encoding", "identity").lower() not in ("identity", ""):
            inbox.refuse("media_type")
            return 415
        if self._open.get(inbox.token) is not inbox:
            inbox.run.count("late")
            return 404
        inbox.requests.append(SpanRequest("traces" if signal == "traces" else "logs", form, body))
        return 200

    def _foreign(self, status: int) -> int:
        """Count a request of nobody for the runs that have a rollout now."""
        for run in {inbox.run for inbox in list(self._open.values())}:
            run.count("foreign_request")
        return status


def _remember(known: dict[str, _Value], key: str, value: _Value) -> None:
    if len(known) >= REMEMBERED:
        known.pop(next(iter(known)), None)
    known[key] = value


@cache
def open_receiver() -> SpanReceiver:
    """Return the receiver of this process, which starts with the first program that may want it."""
    return SpanReceiver()
