"""A worker process as the driver sees it: a socket, and a process that ends with it."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import LOST_WORKER, AgentFailure, ProviderError, describe
from pytest_tfgrpo.engine.executors.protocol import GRACE_S
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply, WorkerSetup
from pytest_tfgrpo.engine.executors.worker_main import HEADER, REPLY

PACKAGE = Path(__file__).parents[3]
"""Folder that has this package, which a worker imports before it knows more."""
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from {module} import main; main(int(sys.argv[2]))"
MAIN = "pytest_tfgrpo.engine.executors.worker_main"
VMSTAT = Path("/proc/vmstat")
OPEN_S = 60.0
"""How long a worker process may take to open the agent."""
ENDED = "it ended"
"""Why a process did not get ready that something else ended, or the agent's module."""
DRAIN_S = 0.5
"""How long what a process sent before it ended is waited for."""
CLOSE_S = 2.0
"""How long an agent may take to release what it holds at the end of a run."""
LIMIT_BYTES = 2**20
"""What is read ahead of a worker's reply."""


class WorkerProcess:
    """One process; it does one thing at a time."""

    def __init__(self, gone: Callable[[WorkerProcess], object]) -> None:
        """`gone` is called when the process has ended."""
        self._gone = gone
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._ended: asyncio.Task[int]
        self._begun = self._is_busy = self._spoilt = False
        self._memory_kills = memory_kills()

    @property
    def is_usable(self) -> bool:
        """Return whether it can take another rollout: it runs, and nothing of the last one is left in it."""
        return not self._spoilt and self._process is not None and self._process.returncode is None

    async def start(self, setup: WorkerSetup) -> str:
        """Start it; return why it does not get ready, or nothing."""
        own, other = socket.socketpair()
        self._reader, self._writer = await asyncio.open_connection(sock=own, limit=LIMIT_BYTES)
        with other:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *_command(other),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(other.fileno(),),
                    start_new_session=True,  # Ctrl-C is for the driver, which ends it
                )
            except OSError as error:
                return f"it does not start: {error}"
        self._ended = asyncio.create_task(self._process.wait())
        self._ended.add_done_callback(self._bury)
        try:
            async with asyncio.timeout(OPEN_S):
                told = await self._exchange("setup", pickle.dumps(setup))
        except TimeoutError:
            return _late()
        return ENDED if told is None else str(pickle.loads(told))

    def _bury(self, _: object) -> None:
        """End what the agent of a process that has ended left in its group."""
        self._kill_group()
        self._spoilt = True
        if not self._is_busy:
            self._writer.close()
        self._gone(self)

    async def ask(self, turn: AgentTurn) -> WorkerReply:
        """Return what the agent answers; see LeasedWorker."""
        self._begun = False
        exchange = asyncio.create_task(self._exchange("ask", pickle.dumps(turn)))
        try:
            data = await asyncio.shield(exchange)
        except asyncio.CancelledError:
            self._spoilt = True  # a thread of the agent may go on in it
            data = await self._last_words(exchange)
            if data is None:
                self.kill()
                raise
        return self._death() if data is None else _read(data)

    async def _last_words(self, exchange: asyncio.Task[bytes | None]) -> bytes | None:
        """Cancel what it does; return what the agent says to that in time, if anything."""
        with suppress(asyncio.CancelledError, OSError):
            self._send("cancel", b"")
        try:
            await asyncio.wait([exchange], timeout=GRACE_S)
        except asyncio.CancelledError:
            exchange.cancel()
            return None
        if exchange.done():
            return exchange.result()
        exchange.cancel()
        return None

    def _death(self) -> WorkerReply:
        """Return what became of an agent whose process ended: nothing else ran in it.

        Raises ProviderError (LOST_WORKER) if the agent had not started yet, or the system had no memory.
        """
        self._spoilt = True
        code = None if self._process is None else self._process.returncode
        how = _ending(code)
        if code == -signal.SIGKILL and memory_kills() > self._memory_kills:
            raise ProviderError(f"a worker process {how}: this machine ran out of memory", LOST_WORKER)
        if not self._begun:
            raise ProviderError(f"a worker process {how} before it called its agent", LOST_WORKER)
        return WorkerReply(fault=AgentFailure(f"the agent's process {how} before it had answered", "crash"))

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt; a process in which it does not end is ended."""
        if not self.is_usable:
            return
        self._spoilt = True
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                self._spoilt = await self._exchange("end", id_.encode()) is None

    async def aclose(self) -> None:
        """Let the agent release what it holds, if it does nothing else; end the process."""
        try:
            if self.is_usable and not self._is_busy:
                self._send("close", b"")
                await asyncio.wait([self._ended], timeout=CLOSE_S)
        finally:
            self.kill()
        if self._process is not None:
            await asyncio.wait([self._ended])

    def kill(self) -> None:
        """End the process, and what its agent started in its group."""
        self._spoilt = True
        if self._process is None:
            self._writer.close()
            self._gone(self)
        elif not self._ended.done():
            self._kill_group()

    def _kill_group(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _exchange(self, what: str, data: bytes) -> bytes | None:
        """Send a message and return the reply to it; None when the process ended before."""
        self._is_busy = True
        answer = asyncio.create_task(self._receive())
        try:
            self._send(what, data)
            await self._writer.drain()
            await asyncio.wait([answer, self._ended], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():  # what is on its way; a child of the agent's may hold the socket open
                await asyncio.wait([answer], timeout=DRAIN_S)
            if answer.done() and (found := answer.result()) is not None:
                return found
        except OSError:
            pass  # as if it had answered nothing
        finally:
            answer.cancel()
            self._is_busy = False
            if self._ended.done():
                self._writer.close()
        await asyncio.wait([self._ended], timeout=DRAIN_S)
        return None

    def _send(self, what: str, data: bytes) -> None:
        self._writer.write(HEADER.pack(what.encode(), len(data)) + data)

    async def _receive(self) -> bytes | None:
        """Return the next reply; None when the process has closed its end."""
        try:
            while True:
                what, size = HEADER.unpack(await self._reader.readexactly(HEADER.size))
                data = await self._reader.readexactly(size)
                if what.rstrip(b"\0") == REPLY:
                    return data
                self._begun = True
        except (OSError, EOFError):
            return None


def memory_kills() -> int:
    """Return how many processes Linux has killed for want of memory since it started; elsewhere 0."""
    try:
        rows = VMSTAT.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return sum(int(row.split()[1]) for row in rows if row.startswith("oom_kill "))


def why_unopened(setup: WorkerSetup) -> str:
    """Start a worker process and end it; return why it cannot open the agent, or nothing. Raises OSError."""
    own, other = socket.socketpair()
    with own:
        with other:
            process = subprocess.Popen(
                _command(other),
                stdin=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                start_new_session=True,
            )
        try:
            own.settimeout(OPEN_S)
            data = pickle.dumps(setup)
            own.sendall(HEADER.pack(b"setup", len(data)) + data)
            with own.makefile("rb") as file:
                head = file.read(HEADER.size)
                size = HEADER.unpack(head)[1] if len(head) == HEADER.size else 0
                return str(pickle.loads(file.read(size))) if size else ENDED
        except TimeoutError:
            return _late()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return ENDED
        finally:
            process.kill()
            process.wait()


def _late() -> str:
    return f"it was not ready after {OPEN_S:g} s"


def _command(channel: socket.socket) -> tuple[str, ...]:
    return (sys.executable, "-c", PROGRAM.format(module=MAIN), str(PACKAGE), str(channel.fileno()))


def _ending(code: int | None) -> str:
    """Return how a process ended, by its exit code or, negative, its signal."""
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _read(data: bytes) -> WorkerReply:
    """Return the reply that a worker sent; one that nobody can read here is the agent's failure."""
    try:
        reply = pickle.loads(data)
    except Exception as error:  # noqa: BLE001 - its answer may hold anything
        return WorkerReply(
            fault=AgentFailure(f"the agent's answer cannot be read: {describe(error)}", "garbage")
        )
    if isinstance(reply, WorkerReply):
        return reply
    return WorkerReply(fault=AgentFailure(f"the agent's worker sent {type(reply).__name__}", "garbage"))
