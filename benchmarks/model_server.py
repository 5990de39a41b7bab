"""A model server for benchmarks: answers each chat completion after a fixed time, in one process of its own.

    python benchmarks/model_server.py DELAY_S [TEXT ...]

It prints its port. It answers the texts in turn; one with a JSON Schema gets a lesson. A GET tells how many
calls were answered since the last one, and the seconds from the first request to the last answer.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Sequence
from itertools import cycle

HEAD_END = b"\r\n\r\n"
LESSON = {
    "comparison": "",
    "operations": [
        {
            "op": "ADD",
            "ids": [],
            "polarity": "do",
            "lesson": "Count the words of a letter one by one.",
            "sources": [],
            "reason": "",
        }
    ],
}


def reply(text: str) -> bytes:
    """Return a whole HTTP response with a completion."""
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "bench",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {"prompt_tokens": 60, "completion_tokens": 5, "total_tokens": 65},
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


class Span:
    """How many calls were answered since somebody asked, and in what time."""

    def __init__(self) -> None:
        self.calls = 0
        self.first_at = self.last_at = 0.0

    def reply(self) -> bytes:
        """Return a whole HTTP response, and begin anew."""
        body = b"%d %.4f" % (self.calls, self.last_at - self.first_at)
        self.calls, self.first_at = 0, 0.0
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests are answered one after the other."""

    def __init__(self, delay_s: float, plain: Iterator[bytes], structured: bytes, span: Span) -> None:
        self._span = span
        self._delay_s = delay_s
        self._plain = plain
        self._structured = structured
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send small packets at once: Nagle's algorithm would add 40 ms to each answer."""
        assert isinstance(transport, asyncio.Transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each whole request after the delay."""
        self._buffer += data
        head, found, rest = self._buffer.partition(HEAD_END)
        if not found:
            return
        if head.startswith(b"GET "):
            self._buffer = rest
            self._transport.write(self._span.reply())
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            return
        body, self._buffer = rest[:length], rest[length:]
        loop = asyncio.get_running_loop()
        self._span.first_at = self._span.first_at or loop.time()
        answer = self._structured if b'"response_format"' in body else next(self._plain)
        loop.call_later(self._delay_s, self._answer, answer)

    def _answer(self, answer: bytes) -> None:
        self._span.calls += 1
        self._span.last_at = asyncio.get_running_loop().time()
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve(delay_s: float, texts: Sequence[str]) -> None:
    """Serve on a free port until killed."""
    plain, structured = cycle([reply(text) for text in texts]), reply(json.dumps(LESSON))
    loop, span = asyncio.get_running_loop(), Span()
    server = await loop.create_server(
        lambda: Connection(delay_s, plain, structured, span), "127.0.0.1", 0, backlog=512
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), sys.argv[2:] or ["3"]))
