"""A strict fake server of the chat-completions protocol: refuses what a real one refuses, keeps what it saw.

    with FakeModel(lambda request, attempt: "42") as server:
        ...  # server.base_url, server.requests

The answer is a function of the request's JSON and of how often that very request came before. It returns a
text, a whole body, or a `Reply`, which the functions below make, faults included.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from pytest_tfgrpo.llm.calls import HELLO

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server sends, and how badly."""

    status: int = 200
    body: Body | bytes = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drip_s: float | None = None
    """Pause before each further byte."""
    cut_at: int | None = None
    """Reset the connection after so many bytes of the body."""
    length: int | None = None
    """What Content-Length says; None: the truth."""
    silent: bool = False
    """Never answer."""
    echo_key: bool = False
    """Say the request's key in every text of the body."""


Answer = Callable[[Body, int], "Reply | Body | str"]
Serve = Callable[..., "FakeModel"]
"""Starts a server: an answer, and options of `FakeModel`."""


def text(content: str | None, *, finish: str = "stop", usage: Any = "true", **message: Any) -> Reply:
    """Return a completion; `usage` "true" is counted, anything else is sent as it is."""
    return Reply(body=completion({"role": "assistant", "content": content, **message}, finish, usage))


def calls(*wanted: tuple[str, Any], content: str | None = None) -> Reply:
    """Return tool calls, each a name and its arguments: an object, or the text of broken ones."""
    made = [
        {
            "id": f"call_{place}_{name}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for place, (name, given) in enumerate(wanted)
    ]
    return text(content, finish="tool_calls", tool_calls=made)


def sampled(
    content: str | None,
    logprobs: Sequence[Any],
    *,
    ids: Any = None,
    count: int | None = None,
    **message: Any,
) -> Reply:
    """Return a completion with log-probabilities, and with ids as a server that was asked for them."""
    finish = "tool_calls" if "tool_calls" in message else "stop"
    body = completion({"role": "assistant", "content": content, **message}, finish)
    entries = [{"token": "x", "logprob": value, "bytes": [120], "top_logprobs": []} for value in logprobs]
    body["choices"][0] |= {"logprobs": {"content": entries, "refusal": None}, "token_ids": ids}
    body["usage"] = usage(10, len(logprobs) if count is None else count)
    return Reply(body=body)


def completion(message: Body, finish: str | None = "stop", usage: Any = "true") -> Body:
    """Return the body of a completion."""
    body: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake-model-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
    }
    if usage is not None:
        body["usage"] = usage
    return body


def usage(prompt: int, completion: int, *, reasoning: int | None = None, cached: int | None = None) -> Body:
    """Return token counts as servers write them."""
    counts: Body = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def refused(status: int, message: str = "refused", *, code: str | None = None, **headers: str) -> Reply:
    """Return an error as OpenAI writes it; header names with ``_`` for ``-``."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Reply(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def rate_limited(retry_after: str | None = None) -> Reply:
    """Return 429, with Retry-After when it is given."""
    reply = refused(429, "Rate limit reached", code="rate_limit_exceeded")
    return reply if retry_after is None else replace(reply, headers={"Retry-After": retry_after})


def filtered() -> Reply:
    """Return a completion that a content filter emptied."""
    return text(None, finish="content_filter")


OVERLOADED = Reply(status=503, body=b"<html><body><h1>503 Service Unavailable</h1></body></html>")
SILENT = Reply(silent=True)
NOT_JSON = Reply(body=b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess')
WRONG_SHAPE = Reply(body={"answer": "42"})
EMPTY_CHOICES = Reply(body={**completion({}), "choices": []})
RESET = replace(text("half of this is lost"), cut_at=40)
DRIP = replace(text("slowly"), drip_s=0.2)
TOO_SHORT = replace(text("shorter than announced"), length=100_000)
TOO_LONG = replace(text("longer than announced"), length=20)
REDIRECT = Reply(status=307, headers={"Location": "https://elsewhere.example/v1/chat/completions"})
BROKEN_ARGUMENTS = calls(("lookup", '{"key": "a'))
UNKNOWN_TOOL = calls(("no_such_tool", {}))
KEY_ECHO = replace(refused(400, "you sent KEY"), echo_key=True)
WRONG_USAGE: tuple[Any, ...] = (
    {"prompt_tokens": -5, "completion_tokens": 2, "total_tokens": -3},
    {"prompt_tokens": 10**15, "completion_tokens": 10**15, "total_tokens": 2 * 10**15},
    {"prompt_tokens": "12", "completion_tokens": 3.5},
    {"prompt_tokens": True, "completion_tokens": 1},
    {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 7},
    {"prompt_tokens": 10, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 900}},
    {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 900}},
    {"prompt_tokens": 10},
    {},
    [],
    None,
)


def huge(size: int = 10_000_000) -> Reply:
    """Return a completion of about `size` bytes."""
    return text("x" * size, usage=usage(10, 100))


def echo(request: Body, attempt: int) -> str:
    """Answer with the last user message."""
    contents = [m["content"] for m in request["messages"] if m["role"] == "user"]
    return str(contents[-1]) if contents else ""


class Batches(Protocol):
    """The batch routes of a server."""

    def reply(
        self, start: str, headers: Mapping[str, str], body: bytes, complete: Callable[..., Reply]
    ) -> Reply:
        """Answer the request ``<method> <path>``; `complete` makes a call of headers and body."""
        ...


class FakeModel:
    """The server, on a thread of its own, while the ``with`` block lasts."""

    def __init__(
        self,
        answer: Answer = echo,
        *,
        keys: Sequence[str] = (),
        delay_s: float = 0.0,
        extra: Sequence[str] = (),
        port: int = 0,
        hello: Answer = lambda request, attempt: "ok",
        batches: Batches | None = None,
    ) -> None:
        """`keys` are accepted, any when there are none; `extra` names further members of requests.

        `batches` serve all other paths; without them there are none.

        `hello` answers the call that only finds out whether a model can be reached; it is kept apart.
        """
        self.hellos: list[Body] = []
        self.requests: list[Body] = []
        """Bodies of all well-formed requests, in order of arrival."""
        self.headers: list[dict[str, str]] = []
        """Headers of the same, names in lower case."""
        self.refusals: list[str] = []
        """Why requests were refused as malformed."""
        self.connections = 0
        self.in_flight = self.most_in_flight = 0
        self.dropped = 0
        """Requests whose client went away before the answer was sent."""
        self._answer = answer
        self._hello = hello
        self._mistakes: list[Exception] = []
        self._keys = keys
        self._delay_s = delay_s
        self._extra = frozenset(extra)
        self._port = port
        self._batches = batches
        self._seen: Counter[bytes] = Counter()
        self._transports: set[asyncio.WriteTransport] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(100), "the fake model did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, if that was not done before; raises what went wrong in the test's answer."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(100)
        if self._mistakes:
            raise self._mistakes[0]

    def go_away(self, seconds: float | None) -> None:
        """Break all connections and refuse further ones, for ever or so long; called by an answer."""
        self._listening.close()
        for transport in self._transports:
            self._loop.call_soon(transport.abort)
        if seconds is not None:
            self._loop.call_later(seconds, self._listen_again)

    def come_back(self) -> None:
        """Serve again after `go_away`; does nothing to a server that is there."""
        self._loop.call_soon_threadsafe(self._listen_again)
        while not self._listening.is_serving():
            time.sleep(0.005)

    def _listen_again(self) -> None:
        if not self._listening.is_serving():
            self._reopening = self._loop.create_task(self._listen())

    async def _listen(self) -> None:
        self._listening = await asyncio.start_server(self._connection, "127.0.0.1", self._port, limit=2**26)
        self._port = self._listening.sockets[0].getsockname()[1]

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()
        self._ready.set()
        await self._stop.wait()
        self._listening.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._transports.add(writer.transport)
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ahead: bytes | None = b""
        try:
            while ahead is not None:
                ahead = await self._exchange(ahead, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._transports.discard(writer.transport)
            writer.close()

    async def _exchange(
        self, ahead: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Serve one request that starts with `ahead`; returns the start of the next one, or None to close."""
        head = (ahead + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self._reply(head[0].rpartition(" ")[0], headers, body)
            more = asyncio.ensure_future(reader.read(1))
            send = asyncio.ensure_future(self._send(writer, reply, headers.get("authorization", "")))
            await asyncio.wait({more, send}, return_when=asyncio.FIRST_COMPLETED)
            if not send.done():  # a client that waits for its answer says nothing: it went away
                send.cancel()
                self.dropped += 1
                return None
            stays = await send
            if not more.done():
                more.cancel()
                await asyncio.wait({more})
                return b"" if stays else None
            return (await more or None) if stays else None
        finally:
            self.in_flight -= 1

    def _reply(self, start: str, headers: Mapping[str, str], body: bytes) -> Reply:
        known = start == "POST /v1/chat/completions"
        if not known and self._batches is None:
            return refused(404, f"no such path: {start}")
        if self._keys and headers.get("authorization", "").removeprefix("Bearer ") not in self._keys:
            return refused(401, "Incorrect API key provided", code="invalid_api_key")
        if not known and self._batches is not None:
            return self._batches.reply(start, headers, body, self.complete)
        return self.complete(headers, body)

    def complete(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Return the reply to a request of the chat-completions protocol."""
        try:
            request = json.loads(body)
            check_request(request, self._extra)
        except (ValueError, KeyError, TypeError) as error:
            self.refusals.append(str(error))
            return refused(400, f"Invalid request: {error}")
        says_hello = request["messages"][-1]["content"] == HELLO.messages[-1].content
        if says_hello:
            self.hellos.append(request)
        else:
            self.requests.append(request)
            self.headers.append(dict(headers))
        attempt = self._seen[body]
        self._seen[body] += 1
        try:
            made = (self._hello if says_hello else self._answer)(request, attempt)
        except Exception as error:
            self._mistakes.append(error)
            return refused(500, f"the test's answer raised {error!r}")
        if isinstance(made, str):
            made = text(made)
        reply = made if isinstance(made, Reply) else Reply(body=made)
        if isinstance(reply.body, dict) and reply.body.get("usage") == "true":
            reply = replace(reply, body={**reply.body, "usage": counted(request, reply.body)})
        return replace(reply, delay_s=reply.delay_s + self._delay_s)

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply, authorization: str) -> bool:
        if reply.silent:
            await asyncio.Event().wait()
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        if reply.echo_key:
            data = data.replace(b"KEY", authorization.removeprefix("Bearer ").encode())
        length = len(data) if reply.length is None else reply.length
        fields = {"Content-Type": "application/json", "Content-Length": str(length), **reply.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {reply.status} Fake\r\n{head}\r\n".encode("latin-1"))
        if reply.drip_s is not None:
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(reply.drip_s)
        elif reply.cut_at is not None:
            writer.write(data[: reply.cut_at])
            await writer.drain()
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        else:
            writer.write(data)
        await writer.drain()
        return length == len(data)


def counted(request: Body, body: Body) -> Body:
    """Return plausible token counts: a token for every four characters."""
    return usage(len(json.dumps(request["messages"])) // 4 + 1, len(json.dumps(body["choices"])) // 4 + 1)


ROLES = ("system", "developer", "user", "assistant", "tool")
MEMBERS = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "stop"),
        *("tools", "tool_choice", "response_format", "reasoning_effort", "n", "stream", "user"),
        *("logprobs", "top_logprobs"),
    }
)


def check_request(request: Any, extra: frozenset[str] = frozenset()) -> None:
    """Raise ValueError for a request that a strict server refuses."""
    _need(isinstance(request, dict), "the body is no object")
    unknown = set(request) - MEMBERS - extra
    _need(not unknown, f"unknown members {sorted(unknown)}")
    _need(isinstance(request.get("model"), str) and request["model"], "model is missing")
    _need(isinstance(request.get("messages"), list) and request["messages"], "messages are missing")
    _need(0 <= request.get("temperature", 1) <= 2, "temperature must be between 0 and 2")
    _need(type(request.get("seed", 0)) is int, "seed must be an integer")
    for name in ("max_tokens", "max_completion_tokens"):
        _need(type(request.get(name, 1)) is int and request.get(name, 1) > 0, f"{name} must be positive")
    _need(type(request.get("logprobs", False)) is bool, "logprobs must be true or false")
    if "top_logprobs" in request:
        _need(request.get("logprobs") is True, "top_logprobs needs logprobs")
        _need(request["top_logprobs"] in range(21), "top_logprobs must be between 0 and 20")
    for tool in request.get("tools", []):
        function = tool["function"]
        _need(tool.get("type") == "function" and isinstance(function["name"], str), "malformed tool")
        _need(function["parameters"]["type"] == "object", "parameters must be an object's schema")
    if "response_format" in request:
        _check_format(request["response_format"])
    _check_messages(request["messages"])


def _check_format(wanted: Body) -> None:
    kind = wanted["type"]
    _need(kind in ("text", "json_object", "json_schema"), f"unknown response_format {kind!r}")
    if kind == "json_schema":
        schema = wanted["json_schema"]
        _need(isinstance(schema["name"], str) and isinstance(schema["schema"], dict), "malformed json_schema")


def _check_messages(messages: list[Body]) -> None:
    open_calls: set[str] = set()
    for message in messages:
        role = message.get("role")
        _need(role in ROLES, f"unknown role {role!r}")
        _need(role == "tool" or not open_calls, f"no answer to tool calls {sorted(open_calls)}")
        _need("content" in message, "content is missing")
        content = message["content"]
        if role == "assistant":
            called = message.get("tool_calls", [])
            _need(isinstance(content, str) or called, "an assistant's message needs content or tool calls")
            for call in called:
                _need(
                    call["type"] == "function" and isinstance(call["function"]["name"], str), "malformed call"
                )
                _need(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments are no object")
                open_calls.add(call["id"])
        elif role == "tool":
            _need(message.get("tool_call_id") in open_calls, "a tool's message without its call")
            _need(isinstance(content, str), "a tool's content must be text")
            open_calls.remove(message["tool_call_id"])
        elif isinstance(content, list):
            _need(bool(content), "content is empty")
            for part in content:
                _check_part(part)
        else:
            _need(isinstance(content, str), "content must be text or parts")
    _need(not open_calls, f"no answer to tool calls {sorted(open_calls)}")


def _check_part(part: Body) -> None:
    if part["type"] == "text":
        _need(isinstance(part["text"], str), "malformed text part")
    else:
        _need(part["type"] == "image_url", f"unknown part {part['type']!r}")
        _need(part["image_url"]["url"].startswith(("data:image/", "https://")), "malformed image")


def _need(holds: Any, message: str) -> None:
    if not holds:
        raise ValueError(message)
