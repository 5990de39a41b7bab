"""The main function of a worker process: it answers what comes over its socket, and dies with the driver."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from os import _exit

from pytest_tfgrpo.engine.executors.worker import WorkerAgent, pickled

HEADER = struct.Struct("<8sQ")
"""What a message begins with: setup, ask, cancel, end or close, and how many bytes follow."""
BEGUN, REPLY = b"begun", b"reply"
"""What it sends: that the agent starts now, and what came of a message."""
DEATH_SIGNAL = 1


def main(descriptor: int) -> None:
    """Serve the driver until it is gone; whatever the agent does meanwhile ends then too."""
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    _die_with_driver()
    agent = _opened(channel)
    if agent is None:
        _end()
    else:
        asyncio.run(_serve(channel, agent))  # then this process ends as any other, with its exit functions


def _opened(channel: socket.socket) -> WorkerAgent | None:
    """Open the agent that the driver names, and say whether that worked."""
    found = _received(channel)
    if found is None:
        return None
    try:
        setup = pickle.loads(found[1])
        sys.path[:] = setup.search
        agent = WorkerAgent(setup)
    except BaseException as error:  # noqa: BLE001 - sent to the driver
        _send(channel, pickle.dumps(f"{type(error).__name__}: {error}"))
        return None
    _send(channel, pickle.dumps(""))
    return agent


async def _serve(channel: socket.socket, agent: WorkerAgent) -> None:
    """Answer until the driver ends the run; without a driver end at once."""
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    def listen() -> None:
        while (found := _received(channel)) is not None:
            loop.call_soon_threadsafe(inbox.put_nowait, found)
        _end()

    threading.Thread(target=listen, name="tfgrpo-driver", daemon=True).start()
    asking: asyncio.Task[None] | None = None
    while True:
        what, data = await inbox.get()
        if what == "ask":
            _send(channel, b"", BEGUN)
            asking = loop.create_task(_answer(channel, agent, data))
        elif what == "cancel" and asking is not None:
            await asyncio.sleep(0)  # it has begun, and replies
            asking.cancel()
        elif what == "end":
            await agent.end(data.decode())
            _send(channel, b"")
        elif what == "close":
            with suppress(Exception):  # the run is over
                await agent.aclose()
            return


async def _answer(channel: socket.socket, agent: WorkerAgent, data: bytes) -> None:
    turn = pickle.loads(data)
    _send(channel, pickled(await agent.answer(turn), turn))


def _received(channel: socket.socket) -> tuple[str, bytes] | None:
    """Return the next message of the driver; None when it is gone."""
    head = _exactly(channel, HEADER.size)
    if head is None:
        return None
    what, size = HEADER.unpack(head)
    data = _exactly(channel, size)
    return None if data is None else (what.rstrip(b"\0").decode(), data)


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts, missing = list[bytes](), size
    while missing:
        try:
            part = channel.recv(min(missing, 2**20))
        except OSError:
            return None
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _send(channel: socket.socket, data: bytes, what: bytes = REPLY) -> None:
    with suppress(OSError):  # the driver is gone, which the other thread sees too
        channel.sendall(HEADER.pack(what, len(data)) + data)


def _die_with_driver() -> None:
    """Have the system kill this process with its driver, as an agent may keep all threads from running."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _end() -> None:
    """End this process, and what the agent started in its group."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    _exit(0)
