"""A model server that speaks OpenAI's protocol, as a thread; the name of a model says what it does."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AbstractContextManager
from typing import Any, Self

CALL = {"id": "call_1", "type": "function", "function": {"name": "orders", "arguments": '{"late": true}'}}
WORDS = ("Your ", "refund ", "is on ", "its way.")
_DATE = "Thu, 01 Jan 2026 12:00:00 GMT"
_SSE = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nx-request-id: r1"


class ModelUpstream(AbstractContextManager["ModelUpstream"]):
    """Models: ``words`` answers, ``tools`` calls one first, ``busy`` is a 429; ``hang`` and ``cut`` fail."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        """Path, headers by lower-case name, and body."""
        self.left = threading.Event()
        """A connection ended before its answer did."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @property
    def sent(self) -> Any:
        """The body of the last request."""
        return json.loads(self.requests[-1][2])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
                body = await _body(reader, headers)
                self.requests.append((first.split()[1], headers, body))
                await self._answer(reader, writer, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            return _whole(writer, 400, {"error": {"message": "that is no JSON"}})
        model = asked.get("model")
        if model == "busy":
            return _whole(
                writer, 429, {"error": {"message": "slow down", "code": "rate"}}, "retry-after: 7\r\nx-odd: é"
            )
        if model == "hang" and not asked.get("stream"):
            await self._until_left(reader)
        tools = model == "tools" and asked["messages"][-1]["role"] != "tool"
        if not asked.get("stream"):
            return _whole(writer, 200, _completion(tools))
        writer.write(f"HTTP/1.1 200 OK\r\n{_SSE}\r\n\r\n".encode())
        for number, delta in enumerate(_deltas(tools)):
            if number == 2 and model == "cut":
                writer.transport.abort()
                raise ConnectionError
            if number == 2 and model == "hang":
                await self._until_left(reader)
            event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            _chunk(writer, json.dumps({**event, "choices": [choice]}))
            await asyncio.sleep(0.01)
        _chunk(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        return None

    async def _until_left(self, reader: asyncio.StreamReader) -> None:
        await reader.read(1)
        self.left.set()
        raise ConnectionError


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "transfer-encoding" not in headers:
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


def _whole(
    writer: asyncio.StreamWriter, status: int, value: object, header: str = "x-request-id: r1"
) -> None:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\ndate: {_DATE}\r\ncontent-type: application/json\r\n{header}\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)


def _chunk(writer: asyncio.StreamWriter, data: str) -> None:
    text = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n" % len(text) + text + b"\r\n")


def _completion(tools: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if tools else "".join(WORDS)}
    if tools:
        message["tool_calls"] = [CALL]
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if tools else "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _deltas(tools: bool) -> list[dict[str, Any]]:
    if not tools:
        return [{"content": word} for word in WORDS]
    first = {**CALL, "index": 0, "function": {"name": "orders", "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": part}} for part in ('{"late"', ": true}")]
    return [{"tool_calls": [part]} for part in (first, *rest)]
