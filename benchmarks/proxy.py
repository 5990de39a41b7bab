"""What the proxy costs beside a bare relay of the same libraries; prints figures and bars, takes a minute.

    python benchmarks/proxy.py

The relay is a starlette application that passes a request on with pyreqwest and streams the answer back. Both
stand before one fake model server, each in a process of its own, and take turns. So does a proxy that
collects, redaction and all; it has no bar. A conversation has four requests, and the version has 40 lessons.
Processor time is that of the process, by the kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_tfgrpo.core.lessons import Experience, Reward, Support
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.deployment.assignment import SessionVersions
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.serving.collector import ChatCollector
from pytest_tfgrpo.production.serving.last_known import ServedState
from pytest_tfgrpo.production.serving.policy import VersionChoice
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.suite.packs import builtin_pack

REQUESTS, STREAMS, CONNECTIONS, ROUNDS = 800, 200, 8, 3
TURNS = 4
CPU_BAR, FIRST_BYTE_BAR_MS, ASSIGNMENT_BAR_US = 2.0, 1.0, 10.0
NOON = "2026-01-01T12:00:00.000Z"
WORDS = [
    f"{a}{b}" for a in ("order", "refund", "invoice", "ticket", "parcel") for b in ("", "s", "ing", "er")
]
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "word " * 200}}
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 200},
    }
).encode()
DELTA = b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": "word "}}]}).encode() + b"\n\n"
CHUNKS = 40


def serving() -> Serving:
    """Return a ramp of v2 at a quarter of the sessions."""
    ramp = Ramp(
        deployment="d",
        version="v3",
        strategy="canary",
        shares=(0.1, 0.25, 1.0),
        waits_min=(60.0, 60.0, 30.0),
        began=(NOON, NOON),
        since=NOON,
        by="ada",
    )
    return Serving(live="v2", ramp=ramp, states={"v2": "live", "v3": "canary"})


def lessons(count: int = 40) -> list[Experience]:
    draw = random.Random(1)
    return [
        Experience(
            id=f"l{n}",
            run_id="r",
            task_id="t",
            domain="shop",
            prompt_pack_id="default",
            epoch=1,
            group_id=f"g{n}",
            summary32=" ".join(draw.choices(WORDS, k=20)),
            polarity="do",
            reward=Reward(gt_score=0.9, relative_rank=0.8),
            support=Support(groups=1, rollouts=4),
            tool_stats=(),
            stamp_signature=builtin_pack().stamp,
            actor="a",
        )
        for n in range(count)
    ]


class Known:
    """A follower that knows what is served."""

    def __init__(self) -> None:
        versions = {name: ServedVersion(name, (builtin_pack(),), lessons()) for name in ("v2", "v3")}
        self.state = ServedState(serving=serving(), versions=versions)


def body(conversation: int, turn: int, *, stream: bool) -> bytes:
    draw = random.Random(conversation)
    messages = [{"role": "system", "content": "You help in a shop. " * 50}]
    for _ in range(turn + 1):
        messages.append(
            {"role": "user", "content": f"{conversation}: " + " ".join(draw.choices(WORDS, k=60))}
        )
        messages.append({"role": "assistant", "content": "word " * 100})
    tools = [
        {"type": "function", "function": {"name": f"t{n}", "description": "d " * 60, "parameters": {}}}
        for n in range(8)
    ]
    value: dict[str, Any] = {"model": "m", "messages": messages[:-1], "tools": tools, "stream": stream}
    return json.dumps(value).encode()


async def upstream(listener: socket.socket) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                data = await reader.readexactly(length)
                if b'"stream": true' in data:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                        b"transfer-encoding: chunked\r\n\r\n"
                    )
                    for _ in range(CHUNKS):
                        writer.write(b"%x\r\n" % len(DELTA) + DELTA + b"\r\n")
                        await asyncio.sleep(0)
                    writer.write(b"0\r\n\r\n")
                else:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                        b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER
                    )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, sock=listener)
    await server.serve_forever()


def bare_relay(base: str) -> Any:
    """Return the application that one writes in a minute."""
    from pyreqwest.client import ClientBuilder
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    client = ClientBuilder().no_proxy().build()
    dropped = {"host", "content-length", "connection"}

    async def relay(request: Request) -> StreamingResponse:
        headers = [(k, v) for k, v in request.headers.items() if k not in dropped]
        url = base + request.url.path.removeprefix("/v1")
        builder = client.request(request.method, url).headers(headers).body_bytes(await request.body())
        sent = builder.streamed_read_buffer_limit(0).build_streamed()
        answer = await sent.__aenter__()

        async def chunks() -> Any:
            try:
                while (chunk := await answer.body_reader.read_chunk()) is not None:
                    yield bytes(chunk)
            finally:
                await sent.__aexit__(None, None, None)

        kept = {
            k: v for k, v in answer.headers.items() if k.lower() not in ("transfer-encoding", "connection")
        }
        return StreamingResponse(chunks(), answer.status, kept)

    return Starlette(routes=[Route("/v1/chat/completions", relay, methods=["POST"])])


def serve(kind: str, base: str) -> None:
    """Serve one of the four, in this process, and print its port."""
    from pytest_tfgrpo.production.service.server import listen, open_server
    from pytest_tfgrpo.production.serving.proxy import PolicyProxy
    from pytest_tfgrpo.production.serving.run_proxy import LIMITS
    from pytest_tfgrpo.production.serving.upstream import Upstream

    listener = listen("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    if kind == "upstream":
        asyncio.run(upstream(listener))
    with TemporaryDirectory() as folder:
        if kind == "bare":
            app = bare_relay(base)
        else:
            collector = ChatCollector(lambda: intake(Path(folder)), print) if kind == "collecting" else None
            if collector is not None:
                collector.start()
            app = PolicyProxy(
                Upstream(base).send,
                VersionChoice(Known()),  # type: ignore[arg-type]
                None if collector is None else collector.add,
                lambda: {"published": None if collector is None else collector.published},
            )
        open_server(app, LIMITS).run([listener])


def intake(folder: Path) -> Intake:
    """Return the door of a bus in a file."""
    bus, scrubber = open_embedded(folder / "bus.db"), LoopScrubber(b"k" * 32)
    return Intake(bus, scrubber, OptOuts(bus, scrubber))


@contextmanager
def process(kind: str, base: str = "") -> Iterator[tuple[int, int]]:
    """Yield port and process id of one of the three."""
    command = [sys.executable, __file__, "--serve", kind, "--base", base]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            yield int(started.stdout.readline()), started.pid
        finally:
            started.kill()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that is kept."""

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def ask(self, conversation: int, turn: int, *, stream: bool) -> float:
        """Return the seconds until the first byte of the body; reads all of it."""
        data = body(conversation, turn, stream=stream)
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer sk-test\r\nx-session-id: s{conversation}\r\n"
            f"content-length: {len(data)}\r\n\r\n"
        )
        start = time.perf_counter()
        self._writer.write(head.encode() + data)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in answer, answer
        if b"content-length:" in answer:
            await self._reader.readexactly(int(answer.partition(b"content-length:")[2].split(b"\r\n")[0]))
            return time.perf_counter() - start
        first = 0.0
        while True:
            size = int(await self._reader.readline(), 16)
            first = first or time.perf_counter() - start
            await self._reader.readexactly(size + 2)
            if not size:
                return first


async def load(port: int, first: int, *, stream: bool) -> None:
    async def one(offset: int) -> None:
        client = Client()
        await client.open(port)
        for conversation in range(first + offset, first + REQUESTS // TURNS, CONNECTIONS):
            for turn in range(TURNS):
                await client.ask(conversation, turn, stream=stream)

    await asyncio.gather(*map(one, range(CONNECTIONS)))


def cpu_us(port: int, pid: int, first: int, *, stream: bool, collects: bool) -> float:
    """Return the processor time of a request, with what it owes the bus."""
    before, published = cpu_s(pid), published_by(port) if collects else 0
    asyncio.run(load(port, first, stream=stream))
    while collects and published_by(port) < published + REQUESTS:
        time.sleep(0.05)
    return (cpu_s(pid) - before) / REQUESTS * 1e6


def published_by(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
        return int(json.load(answer)["published"])


async def first_bytes_ms(ports: list[int]) -> list[float]:
    """Return the median time to the first byte of a stream, of several that take turns."""
    clients = [Client() for _ in ports]
    for client, port in zip(clients, ports, strict=True):
        await client.open(port)
    times: list[list[float]] = [[] for _ in ports]
    for n in range(STREAMS):
        for client, found in zip(clients, times, strict=True):
            found.append(await client.ask(10_000_000 + n // TURNS, n % TURNS, stream=True))
    return [statistics.median(found) * 1e3 for found in times]


def assignment_us() -> float:
    versions, at = SessionVersions(), serving()
    names = [f"session-{n}" for n in range(20_000)]
    start = time.perf_counter()
    for name in names:
        versions.version(at, name)
    return (time.perf_counter() - start) / len(names) * 1e6


def main() -> int:
    with process("upstream") as (model, _):
        base = f"http://127.0.0.1:{model}/v1"
        with (
            process("bare", base) as bare,
            process("proxy", base) as ours,
            process("collecting", base) as kept,
        ):
            figures: dict[tuple[str, bool], list[float]] = {}
            for n in range(ROUNDS + 1):
                for stream in (False, True):
                    for name, (port, pid) in {"bare": bare, "proxy": ours, "collecting": kept}.items():
                        collects = name == "collecting"
                        used = cpu_us(
                            port, pid, (2 * n + stream) * REQUESTS, stream=stream, collects=collects
                        )
                        if n:
                            figures.setdefault((name, stream), []).append(used)
            first = asyncio.run(first_bytes_ms([bare[0], ours[0], kept[0]]))
    passed = True
    for stream in (False, True):
        relay = statistics.median(figures["bare", stream])
        for name in ("proxy", "collecting"):
            found = statistics.median(figures[name, stream])
            ratio = found / relay
            passed &= ratio <= CPU_BAR or name == "collecting"
            bar = f" (bar {CPU_BAR:g}x)" if name == "proxy" else ""
            what = f"{name}, {'streamed' if stream else 'whole'}"
            print(f"{what}: {found:.0f} us a request, the relay {relay:.0f}: {ratio:.2f}x{bar}")
    for name, found in zip(("proxy", "collecting"), first[1:], strict=True):
        later = found - first[0]
        passed &= later <= FIRST_BYTE_BAR_MS
        print(f"{name}: first byte {later:+.2f} ms, the relay {first[0]:.2f} (bar +{FIRST_BYTE_BAR_MS:g})")
    us = assignment_us()
    passed &= us <= ASSIGNMENT_BAR_US
    print(f"assignment: {us:.1f} us (bar {ASSIGNMENT_BAR_US:g})")
    return 0 if passed else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve")
    parser.add_argument("--base", default="")
    given = parser.parse_args()
    sys.exit(serve(given.serve, given.base) if given.serve else main())
