"""The network `loopback` of the sandbox: relays to servers on this machine."""

import asyncio
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.engine.attempts.attempt import attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace

CLIENT = """
import socket, sys, threading
with socket.create_connection(({host!r}, {port}), timeout=100) as sock:
    def send():
        sock.sendall(b"x" * {size})
        sock.shutdown(socket.SHUT_WR)
    threading.Thread(target=send).start()
    count = 0
    while data := sock.recv(65536):
        count += len(data)
print(count)
"""


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65_536):
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Server6(Server):
    address_family = socket.AF_INET6


@pytest.fixture(params=["127.0.0.1", "0.0.0.0", "127.0.0.7", "::1", "::"])
def server(request: pytest.FixtureRequest) -> Iterator[socketserver.BaseServer]:
    kind = Server6 if ":" in request.param else Server
    with kind((request.param, 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def answers(folder: Path, source: str, count: int = 1) -> list[str]:
    """Ask an agent so many times at once, with the network `loopback`."""
    require_tool("bwrap")
    (folder / "agent.py").write_text(source)
    settings: Any = {"sandbox": "bwrap", "sandbox_network": "loopback"}
    actor = open_actor(f"command:'{sys.executable}' agent.py", root=folder, settings=settings)

    async def scene() -> list[str]:
        calls = [
            ActorCall(
                task=Task(id="t", domain="d", prompt="p"),
                prompt=Prompt(system="s", user="u"),
                temperature=0.0,
                seed=1,
                workspace=Workspace(folder / f"work{n}"),
                timeout_s=30.0,
                answer_max_bytes=1000,
            )
            for n in range(count)
        ]
        outcomes = await asyncio.gather(*(attempt(actor, call) for call in calls))
        return [outcome.answer or str(outcome.failure) for outcome in outcomes]

    return asyncio.run(scene())


def test_servers_at_any_address_of_loopback_are_reached_at_once(tmp_path: Path, server: Any) -> None:
    host, port = server.server_address[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    source = CLIENT.format(host=host, port=port, size=3_000_000)
    assert answers(tmp_path, source, count=3) == ["3000000"] * 3


def test_one_agent_does_not_reach_another(tmp_path: Path) -> None:
    source = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
    socket.create_connection(("127.0.0.1", port)).close()
    print(sorted(name for _, name in socket.if_nameindex()), open("/proc/net/route").read().count(chr(10)))
"""
    assert answers(tmp_path, source, count=2) == ["['lo'] 1"] * 2
