"""Channels to supervisors and how they are used again, without a process."""

import marshal
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.sandbox.programs import processes
from pytest_tfgrpo.sandbox.programs.processes import Channel, Start, finish, start
from pytest_tfgrpo.sandbox.programs.supervisor import HEADER, RECORD


class Server:
    """A fork server that makes channels of its own: to supervisors that are alive, or were killed."""

    def __init__(self, *idle: Channel, alive: bool = True) -> None:
        self.idle = list(idle)
        self.alive = alive
        self.made: list[tuple[bool, socket.socket]] = []
        self.closed = False

    def gone(self) -> bool:
        return self.closed

    def channel(self, *, sandboxed: bool) -> Channel:
        ours, theirs = socket.socketpair()
        self.made.append((sandboxed, theirs))
        if not self.alive:
            theirs.close()
        return Channel(ours, sandboxed=sandboxed)

    def close(self) -> None:
        for channel in self.idle:
            channel.close()
        for _, end in self.made:
            end.close()


def serving(monkeypatch: pytest.MonkeyPatch, server: Server) -> Server:
    monkeypatch.setattr(processes, "_fork_server", server)
    return server


def killed(*, sandboxed: bool = False) -> Channel:
    """Return a channel whose supervisor is gone."""
    ours, theirs = socket.socketpair()
    theirs.close()
    return Channel(ours, sandboxed=sandboxed)


TOOL = Start(argv=("tool", "ä"), folder=Path("/work"), environment={"A": "1"}, files=(0, 1, 2))
BOXED = Start(argv=("/usr/bin/bwrap",), folder=Path("/"), environment={}, files=(0, 1, 2), loopback=True)


def test_a_channel_says_what_is_to_start_and_hands_over_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving(monkeypatch, Server())
    for launch, boxed in ((TOOL, False), (BOXED, True)):
        channel = start(launch)
        sandboxed, end = server.made[-1]
        assert (sandboxed, channel.sandboxed) == (boxed, boxed)
        head, files, _, _ = socket.recv_fds(end, HEADER.size, 4)
        request = end.recv(1 << 12)
        for file in files:
            os.close(file)
        assert (HEADER.unpack(head)[0], len(files)) == (len(request), 3)
        assert marshal.loads(request) == {
            "argv": [word.encode() for word in launch.argv],
            "loopback": launch.loopback,
            "apart": False,
            "folder": str(launch.folder).encode(),
            "environment": {b"A": b"1"} if launch is TOOL else {},
        }
        channel.close()
    server.close()


def test_a_report_is_read_as_it_comes_and_a_lost_supervisor_is_none() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    channel = Channel(ours, sandboxed=False)
    report = RECORD.pack(b"X", -9)
    theirs.send(report + RECORD.pack(b"G", 0)[:2])
    assert channel.read() == ("X", -9)
    channel.set_blocking(False)
    with pytest.raises(BlockingIOError):
        channel.read()
    theirs.send(RECORD.pack(b"G", 0)[2:])
    assert channel.read() == ("G", 0)
    channel.terminate()
    channel.end()
    assert [HEADER.unpack(theirs.recv(HEADER.size))[0] for _ in range(2)] == [0, -1]
    channel.terminate()  # unread, so that the close below resets the connection
    theirs.close()
    assert channel.read() is None
    channel.end()
    channel.close()
    lost = killed()
    assert lost.read() is None
    lost.close()


def test_a_supervisor_serves_again_once_all_of_its_program_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving(monkeypatch, Server())
    first, boxed, second = (server.channel(sandboxed=sandboxed) for sandboxed in (False, True, False))
    first.set_blocking(False)
    for channel in (first, boxed, second):
        finish(channel, gone=True)
    assert server.idle == [first, boxed, second]
    assert os.get_blocking(first.fileno())
    assert start(BOXED) is boxed
    assert start(TOOL) is second
    assert start(TOOL) is first
    assert (server.idle, len(server.made)) == ([], 3)
    finish(first, gone=False)
    assert first.fileno() == -1
    server.closed = True
    finish(second, gone=True)
    assert (second.fileno(), server.idle) == (-1, [])
    boxed.close()
    server.close()


def test_only_a_few_supervisors_wait_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving(monkeypatch, Server())
    channels = [server.channel(sandboxed=False) for _ in range(5)]
    for channel in channels:
        finish(channel, gone=True)
    assert (server.idle, channels[4].fileno()) == (channels[:4], -1)
    server.close()


def test_a_supervisor_that_somebody_killed_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = killed()
    server = serving(monkeypatch, Server(lost))
    channel = start(TOOL)
    assert (lost.fileno(), server.idle, len(server.made)) == (-1, [], 1)
    channel.close()
    server.close()
    server = serving(monkeypatch, Server(alive=False))
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        start(TOOL)
    assert len(server.made) == 1


def test_a_fork_server_that_is_gone_is_closed_and_another_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = killed()
    old = serving(monkeypatch, Server(idle))
    old.closed = True
    other = Server()
    monkeypatch.setattr(processes, "_ForkServer", lambda: other)
    channel = start(TOOL)
    assert (idle.fileno(), len(other.made)) == (-1, 1)
    finish(channel, gone=True)
    assert other.idle == [channel]
    processes.close_fork_server()
    processes.close_fork_server()
    assert (processes._fork_server, channel.fileno()) == (None, -1)


def test_a_fork_server_of_another_process_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    class Process:
        code: int | None = None

        def __init__(self, argv: list[str], **options: Any) -> None:
            self.end = os.dup(options["stdin"])

        def poll(self) -> int | None:
            return self.code

        def wait(self, limit: float) -> None:
            waited.append(limit)
            raise subprocess.TimeoutExpired("supervisor", limit)

    monkeypatch.setattr("subprocess.Popen", Process)
    server = processes._ForkServer()
    end = socket.socket(fileno=server._process.end)  # type: ignore[attr-defined]
    assert server.gone() is False
    channel = server.channel(sandboxed=True)
    message, files, _, _ = socket.recv_fds(end, 1, 1)
    assert (message, len(files), channel.sandboxed) == (b"M", 1, True)
    os.write(files[0], RECORD.pack(b"S", 7))
    os.close(files[0])
    assert channel.read() == ("S", 7)
    server.idle.append(channel)
    server._process.code = 1  # type: ignore[attr-defined]
    assert server.gone() is True
    server._process.code = None  # type: ignore[attr-defined]
    server.close()
    assert (waited, channel.fileno(), end.recv(1)) == ([processes.END_S], -1, b"")
    end.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        server.channel(sandboxed=False)
    server.owner += 1
    assert server.gone() is True
    server.close()
    assert len(waited) == 1
