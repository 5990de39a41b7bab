"""The proxy: passes requests to a model server, with the texts of the version that a session meets.

An ASGI application. What it cannot read it passes as it is; an error is an upstream without an answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.serving.chat_body import read_chat
from pytest_tfgrpo.production.serving.policy import VersionChoice
from pytest_tfgrpo.production.serving.recording import LEFT, AddExchange, ChatRecord, PassingChat
from pytest_tfgrpo.production.serving.run_traces import RunTraces
from pytest_tfgrpo.production.serving.upstream import Headers, UpstreamFault, UpstreamRequest

CHAT, HEALTH, ROOT = "/v1/chat/completions", "/healthz", "/v1"
LARGEST_READ = 32 << 20
"""Bytes of a body that is read before it is sent; a larger one streams through as it is."""
LARGEST_WHOLE = 1 << 20
"""Bytes of an answer of known length that is sent at once."""
POLICY_HEADER, TRAJECTORY_HEADER = b"x-tfgrpo-policy", b"x-tfgrpo-trajectory"
_OF_A_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade", "host", "expect"),
    }
)
"""Headers that hold for one connection."""
_LARGEST_STATUS = 599
"""Of HTTP; the server knows no other."""
_CLIMBS = re.compile(r"(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=[/\\;]|%2f|%5c|$)", re.IGNORECASE)
"""A path that would lead out of the upstream's base URL, as servers of any kind read it."""
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]


class ModelAnswer(Protocol):
    """See `UpstreamAnswer`."""

    status: int
    headers: Headers

    async def read(self) -> bytes | None: ...

    async def end(self) -> None: ...


SendUpstream: TypeAlias = Callable[[UpstreamRequest], Awaitable[ModelAnswer]]


class CutAnswer(Exception):
    """The upstream cut its answer: the server closes the client's connection, so that it sees that too."""


class _Passing(NamedTuple):
    request: UpstreamRequest
    said: Mapping[bytes, str]
    """Headers that the answer gets."""
    record: ChatRecord | None


class PolicyProxy:
    """The application; for one event loop."""

    def __init__(
        self,
        send_upstream: SendUpstream,
        choice: VersionChoice,
        add: AddExchange | None,
        health: Callable[[], Mapping[str, Json]],
    ) -> None:
        """`add` takes what is collected, None: nothing; `health` says more for ``GET /healthz``."""
        self._send_upstream, self._choice = send_upstream, choice
        self._add, self._runs, self._health = add, RunTraces(), health
        self.counts: Counter[str] = Counter()
        """Requests by version, ``unchanged`` and ``other``; answers that were ``unreachable`` or ``cut``.

        A version without texts has several domains, of which the request names none that it knows.
        """

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer a request."""
        path: str = scope["path"]
        if path == HEALTH:
            await _send_json(send, 200, {"status": "ok", "requests": dict(self.counts), **self._health()})
        elif (written := _written(scope)).startswith(f"{ROOT}/") and _CLIMBS.search(written) is None:
            await self._while_connected(scope, receive, send)
        else:
            await _refuse(send, 404, f"the proxy has no path {path[:200]!r}; use {ROOT}/...", "not_found")

    async def _while_connected(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """Pass a request; where its client leaves, what goes on for it is cancelled."""
        body, more = await _read(receive)
        if body is None:
            return
        passing = self._begin(scope, body, _rest(body, receive) if more else None)
        if more:
            await self._pass(passing, send)
            return
        main, left = asyncio.current_task(), False
        assert main is not None

        def leave(_: object) -> None:
            nonlocal left
            left = True
            main.cancel()

        watch = asyncio.ensure_future(receive())
        watch.add_done_callback(leave)

        def settle() -> None:
            watch.remove_done_callback(leave)

        try:
            await self._pass(passing, send, settle)
        except asyncio.CancelledError:
            if not left:
                raise
            main.uncancel()
        finally:
            settle()
            watch.cancel()

    def _begin(self, scope: AsgiMessage, body: bytes, stream: AsyncIterator[bytes] | None) -> _Passing:
        """Return what is sent for a request."""
        headers = [(name.decode("latin-1"), _text(value)) for name, value in scope["headers"]]
        dropped = _named_by_connection(headers)
        if body and stream is None:
            dropped |= {"content-length"}  # the body may change
        kept = [one for one in headers if one[0] not in dropped]
        path = _with_query(scope).removeprefix(ROOT)
        completes = scope["path"] == CHAT and scope["method"] == "POST"
        chat = read_chat(body) if completes and stream is None else None
        if chat is None:
            self.counts["unchanged" if completes else "other"] += 1
            return _Passing(UpstreamRequest(scope["method"], path, kept, stream or body), {}, None)
        passing = PassingChat(chat, dict(headers))
        version, prompt = self._choice.choose(passing.session, chat.task, passing.domain)
        bare = f"{version} without texts" if not prompt.parts and version != FIRST else version
        self.counts[bare if version else "unchanged"] += 1
        said = {POLICY_HEADER: version} if version else {}
        record = None
        if self._add is not None:
            record = ChatRecord(passing, version, prompt, self._runs, self._add)
            said[TRAJECTORY_HEADER] = record.trajectory
            kept = [(name, _readable(value) if name == "accept-encoding" else value) for name, value in kept]
        if prompt.parts:
            body = chat.with_texts(prompt.parts, prompt.place)
        return _Passing(UpstreamRequest(scope["method"], path, kept, body), said, record)

    async def _pass(
        self, passing: _Passing, send: AsgiSend, settle: Callable[[], None] = lambda: None
    ) -> None:
        """Send a request, and its answer as it arrives; `settle` is called before the end of the answer."""
        record = passing.record
        status, encoding, error = 0, "", LEFT
        try:
            try:
                answer = await self._send_upstream(passing.request)
            except UpstreamFault as fault:
                error = str(fault)
                self.counts["unreachable"] += 1
                settle()
                if record is not None:
                    record.end(status, encoding, error)
                await _refuse(send, *_of_fault(fault))
                return
            status, encoding = answer.status, _header(answer.headers, "content-encoding")
            try:
                await self._relay(answer, passing, send, settle)
                error = ""
            except UpstreamFault as fault:
                error = f"the answer was cut: {fault}"
                self.counts["cut"] += 1
                if not _is_short(answer.headers):
                    raise CutAnswer(error) from None
                settle()
                if record is not None:
                    record.end(status, encoding, error)
                await _refuse(send, *_of_cut(fault))
            finally:
                await answer.end()
        finally:
            if record is not None:
                record.end(status, encoding, error)

    async def _relay(
        self, answer: ModelAnswer, passing: _Passing, send: AsgiSend, settle: Callable[[], None]
    ) -> None:
        headers = [(name.lower(), value) for name, value in answer.headers]
        dropped = _named_by_connection(headers)
        if _header(headers, "transfer-encoding"):
            dropped |= {"content-length"}  # it does not hold beside the other
        kept = [(name.encode(), value.encode()) for name, value in headers if name not in dropped]
        kept += [(name, value.encode()) for name, value in passing.said.items()]
        status = answer.status if answer.status <= _LARGEST_STATUS else 502
        start = {"type": "http.response.start", "status": status, "headers": kept}
        record = passing.record
        if _is_short(answer.headers):
            parts = []
            while (chunk := await answer.read()) is not None:
                parts.append(chunk)
            body = b"".join(parts)
            settle()
            if record is not None:
                record.keep(body)
                record.end(answer.status, _header(answer.headers, "content-encoding"))
            await send(start)
            await send({"type": "http.response.body", "body": body})
            return
        await send(start)
        while (chunk := await answer.read()) is not None:
            if record is not None:
                record.keep(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        settle()
        if record is not None:
            record.end(answer.status, _header(answer.headers, "content-encoding"))
        await send({"type": "http.response.body", "body": b""})


async def _read(receive: AsgiReceive) -> tuple[bytes | None, bool]:
    """Return a body, None where the client left, and whether there is more than is read at once."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return message.get("body", b""), False
    body = bytearray()
    while message["type"] == "http.request":
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if not more or len(body) > LARGEST_READ:
            return bytes(body), more
        message = await receive()
    return None, False


async def _rest(body: bytes, receive: AsgiReceive) -> AsyncIterator[bytes]:
    """Yield a body whose first part was read; raises CutAnswer where the client leaves before its end."""
    yield body
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise CutAnswer("the client left before the end of its body")
        yield message.get("body", b"")
        more = message.get("more_body", False)


def _written(scope: AsgiMessage) -> str:
    """Return the path as the client wrote it."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1")


def _with_query(scope: AsgiMessage) -> str:
    query: bytes = scope.get("query_string", b"")
    return _written(scope) + (f"?{query.decode('latin-1')}" if query else "")


def _named_by_connection(headers: Headers) -> frozenset[str]:
    """Return the names of headers that hold for one connection, also those that it names itself."""
    named = (
        name.strip().lower() for key, value in headers if key == "connection" for name in value.split(",")
    )
    return _OF_A_HOP.union(named)


def _text(value: bytes) -> str:
    """Return the value of a header; one that is UTF-8 is sent as the bytes that it was."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _readable(encoding: str) -> str:
    """Return the part of an ``accept-encoding`` that can be read here."""
    return "gzip" if "gzip" in encoding.lower() else "identity"


def _header(headers: Headers, wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "").strip().lower()


def _is_short(headers: Headers) -> bool:
    length = _header(headers, "content-length")
    if _header(headers, "transfer-encoding"):
        return False
    return length.isascii() and length.isdigit() and int(length[:20]) <= LARGEST_WHOLE


def _of_fault(fault: UpstreamFault) -> tuple[int, str, str]:
    """Return status, message and code of the answer to a request that the upstream does not answer."""
    if fault.late:
        return 504, f"the model server behind the proxy gave no answer in time: {fault}", "upstream_timeout"
    return 502, f"the proxy cannot reach the model server: {fault}", "upstream_unreachable"


def _of_cut(fault: UpstreamFault) -> tuple[int, str, str]:
    """Return the same for an answer that is cut before the client got anything of it."""
    status = 504 if fault.late else 502
    return status, f"the model server behind the proxy cut its answer: {fault}", "upstream_cut"


async def _refuse(send: AsgiSend, status: int, message: str, code: str) -> None:
    """ModelAnswer with an error in the form of OpenAI's."""
    error = {"message": message, "type": "proxy_error", "param": None, "code": code}
    await _send_json(send, status, {"error": error})


async def _send_json(send: AsgiSend, status: int, value: Json) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
