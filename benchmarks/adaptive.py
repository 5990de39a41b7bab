"""Compare `concurrency = auto` with fixed numbers of calls, at a server whose hidden limit stays or moves.

    python benchmarks/adaptive.py [SECONDS]

A server in a process of its own answers after about 0.2 s and refuses calls beyond its limit with 429. Each
case is run with `auto`, with 64, and with a row of other numbers, of which the best is only known afterwards.
Every call is made again until it is answered; there are as many as the server can answer in the given time.
Printed are calls answered a second, the share of calls refused (for `auto` also of its second half), and
ratios within the case.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig
from pytest_tfgrpo.llm.limits.slots import endpoint_uses
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.protocol import Message, Request

HEAD_END = b"\r\n\r\n"
DELAY_S, SPREAD = 0.2, 0.3
"""Median time of an answer, and the spread of its logarithm."""
MOVES_S = 10.0
CASES: Mapping[str, tuple[int, ...]] = {
    "10": (10,),
    "40": (40,),
    "64": (64,),
    "100": (100,),
    "60/20": (60, 20),
}
"""Limits in turn, each for `MOVES_S`."""
CALLERS = 512


def response(status: str, body: object) -> bytes:
    """Return a whole HTTP response."""
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


ANSWER = response(
    "200 OK",
    {
        "choices": [{"index": 0, "message": {"content": "3"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    },
)
REFUSAL = response("429 Too Many Requests", {"error": {"message": "too many", "code": "rate_limit"}})


async def serve(limits: tuple[int, ...]) -> None:
    """Serve until killed; print the port. The limit begins with the first request."""
    inside, began, chance = 0, 0.0, random.Random(0)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal inside, began
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                head = await reader.readuntil(HEAD_END)
                length = next(
                    int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if b"content-length" in x
                )
                await reader.readexactly(length)
                now = time.monotonic()
                began = began or now
                if inside >= limits[int((now - began) / MOVES_S) % len(limits)]:
                    writer.write(REFUSAL)
                    continue
                inside += 1
                try:
                    await asyncio.sleep(DELAY_S * chance.lognormvariate(0, SPREAD))
                finally:
                    inside -= 1
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class NoBudget:
    """Spending without a limit; it counts."""

    def __init__(self) -> None:
        self.attempts = 0

    async def reserve(self, bound: object) -> None:  # noqa: ARG002 - part of the Protocol
        """Count an attempt."""
        self.attempts += 1

    def settle(self, *_: object, **__: object) -> None:
        """Do nothing."""


async def run(port: int, concurrency: int | str, calls: int) -> dict[str, float]:
    """Make `calls`, each until it is answered, and return rate and refusals."""
    spending = NoBudget()
    endpoint = Endpoint(
        name="x",
        base_url=f"http://127.0.0.1:{port}/v1",
        free=True,
        concurrency=concurrency,  # type: ignore[arg-type]
        retries=20,
    )
    models = Models(ModelsConfig(endpoints={"x": endpoint}), environ={}, spending=spending, max_tokens=10)
    model = models.open("openai:m@x")
    request = Request(messages=(Message(role="user", content="How many?"),), temperature=0.0)
    left, answered, halfway = iter(range(calls)), 0, (0, 0)

    async def caller() -> None:
        nonlocal answered, halfway
        for _ in left:
            while True:
                try:
                    await model.complete(request)
                    break
                except ModelError as error:
                    if error.code != "rate_limit":
                        raise
            answered += 1
            if answered == calls // 2 and (uses := endpoint_uses([model])):
                halfway = uses[0].calls, uses[0].refused

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took_s = time.perf_counter() - began
    uses = endpoint_uses([model])
    await models.aclose()
    late, refused = (uses[0].calls - halfway[0], uses[0].refused - halfway[1]) if uses else (1, 0)
    return {
        "rate": calls / took_s,
        "refused": 1 - calls / spending.attempts,
        "settled_refused": refused / late,
        "limit": uses[0].concurrency if uses else float("nan"),
    }


def measured(limits: tuple[int, ...], concurrency: int | str, calls: int) -> dict[str, float]:
    """Run against a fresh server."""
    command = [sys.executable, __file__, "serve", *map(str, limits)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return asyncio.run(run(int(server.stdout.readline()), concurrency, calls))
        finally:
            server.kill()


def main(seconds: float) -> None:
    """Print a table of all cases."""
    print(f"answers take {DELAY_S:g} s, {CALLERS} callers; limits in turn, each for {MOVES_S:g} s")
    for name, limits in CASES.items():
        calls = int(seconds * sum(limits) / len(limits) / DELAY_S)
        rows = {n: measured(limits, n, calls) for n in sorted({64, *limits, sum(limits) // len(limits)})}
        auto = measured(limits, "auto", calls)
        best = max(rows, key=lambda n: rows[n]["rate"])
        print(f"limit {name}, {calls} calls")
        for n, row in rows.items():
            print(f"  {n:>4}  {row['rate']:7.1f} calls/s  refused {row['refused']:.1%}")
        print(
            f"  auto  {auto['rate']:7.1f} calls/s  refused {auto['refused']:.1%}, second half "
            f"{auto['settled_refused']:.2%}, at the end {auto['limit']:g};\n        "
            f"{auto['rate'] / rows[best]['rate']:.3f} of the best fixed ({best}), "
            f"{auto['rate'] / rows[64]['rate']:.3f} of 64",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(tuple(map(int, sys.argv[2:]))))
    else:
        main(float(sys.argv[1]) if sys.argv[1:] else 30.0)
