"""A worker process as the driver sees it, and its main function, without a process."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import ROOT
from support.executors import asked

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import LOST_WORKER, AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.executors import process, worker_main, worker_process
from pytest_tfgrpo.engine.executors.process import STARTS, ProcessWorkers
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply, WorkerSetup
from pytest_tfgrpo.engine.executors.worker_main import BEGUN, HEADER, REPLY
from pytest_tfgrpo.engine.executors.worker_process import ENDED, WorkerProcess, _ending, _read

SETTINGS: dict[str, object] = {"sandbox": "none"}


def setup_of(agent: str) -> WorkerSetup:
    spec = f"python:support.worker_agents:{agent}"
    return WorkerSetup(agent=partial(open_actor, spec, settings=SETTINGS), root=ROOT / "tests")


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (None, "closed its connection"),
        (0, "ended with exit code 0"),
        (7, "ended with exit code 7"),
        (-9, "was killed by SIGKILL"),
        (-250, "was killed by signal 250"),
    ],
)
def test_how_a_process_ended_is_told_in_words(code: int | None, how: str) -> None:
    assert _ending(code) == how


def test_a_reply_that_nobody_can_read_is_the_agents_failure() -> None:
    whole = WorkerReply(trajectory=Trajectory(answer="3"))
    assert _read(pickle.dumps(whole)) == whole
    for data, why in ((b"\x80", "the agent's answer cannot be read: "), (pickle.dumps(3), "worker sent int")):
        fault = _read(data).fault
        assert isinstance(fault, AgentFailure)
        assert (fault.code, why in str(fault)) == ("garbage", True)


@pytest.mark.parametrize(
    ("code", "begun", "kills", "lost"),
    [
        (7, True, 0, ""),
        (-9, True, 0, ""),
        (-9, True, 1, "was killed by SIGKILL: this machine ran out of memory"),
        (-15, True, 1, ""),
        (7, False, 0, "ended with exit code 7 before it called its agent"),
        (None, False, 0, "closed its connection before it called its agent"),
    ],
)
def test_a_process_that_ended_is_its_agents_failure_once_that_was_asked(
    code: int | None, begun: bool, kills: int, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "memory_kills", lambda: 3)
    worker: Any = WorkerProcess(lambda _: None)
    monkeypatch.setattr(worker_process, "memory_kills", lambda: 3 + kills)
    worker._begun, worker._process = begun, SimpleNamespace(returncode=code)
    if lost:
        with pytest.raises(ProviderError, match=f"a worker process {lost}") as raised:
            worker._death()
        assert raised.value.code == LOST_WORKER
    else:
        fault = worker._death().fault
        assert isinstance(fault, AgentFailure)
        assert (fault.code, _ending(code) in str(fault)) == ("crash", True)
    assert not worker.is_usable


def test_a_worker_is_usable_while_it_runs_with_nothing_left_in_it() -> None:
    worker: Any = WorkerProcess(lambda _: None)
    assert not worker.is_usable
    worker._process = SimpleNamespace(returncode=None)
    assert worker.is_usable
    worker._process.returncode = 0
    assert not worker.is_usable
    worker._process.returncode, worker._spoilt = None, True
    assert not worker.is_usable


class Start:
    """Worker processes that get ready, or not, as the next of `whys` says."""

    def __init__(self, *whys: str | BaseException) -> None:
        self.whys, self.killed = list(whys), list[int]()
        self.made = 0

    def __call__(self, gone: Any) -> Any:
        number, self.made = self.made, self.made + 1

        async def start(setup: WorkerSetup) -> str:
            why = self.whys.pop(0)
            if isinstance(why, BaseException):
                raise why
            return why

        return Started(number=number, start=start, kill=lambda: self.killed.append(number), is_usable=True)


class Started(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def workers_of(start: Start, monkeypatch: pytest.MonkeyPatch) -> ProcessWorkers:
    monkeypatch.setattr(process, "WorkerProcess", start)
    return ProcessWorkers(setup_of("half"), 2)


@pytest.mark.parametrize(
    ("whys", "killed", "message"),
    [
        ([""], [], ""),
        ([ENDED, ENDED, ""], [0, 1], ""),
        ([ENDED] * STARTS, [0, 1, 2], "a worker process cannot open the agent: it ended"),
        (["no module"], [0], "a worker process cannot open the agent: no module"),
        ([KeyboardInterrupt()], [0], ""),
    ],
)
def test_a_worker_that_something_else_ended_is_started_again_and_no_other(
    whys: list[Any], killed: list[int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Start(*whys)
    workers = workers_of(start, monkeypatch)
    raises: type[BaseException] | None = ProviderError if message else None
    raises = KeyboardInterrupt if isinstance(whys[0], KeyboardInterrupt) else raises
    if raises is None:
        assert asyncio.run(workers._ready()).number == len(killed)  # type: ignore[attr-defined]
    else:
        with pytest.raises(raises, match=message or None):
            asyncio.run(workers._ready())
    assert start.killed == killed


def test_a_worker_is_used_again_unless_something_is_left_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start("", "")
    workers = workers_of(start, monkeypatch)

    async def number(usable: bool) -> int:
        async with workers.lease() as lease:
            worker: Any = lease._worker
            worker.is_usable = usable
            return int(worker.number)

    async def main() -> list[int]:
        return [await number(True), await number(False), await number(True), await number(True)]

    assert asyncio.run(main()) == [0, 0, 1, 1]
    assert start.killed == [0]


class Child:
    """A process that answers what it is sent as `answer` says; it ends when its group is killed."""

    pid = 4_000_000

    def __init__(self, answer: Any) -> None:
        self.answer, self.returncode = answer, None
        self.sent: list[str] = []
        self.options: dict[str, Any] = {}
        self._ended = asyncio.Event()

    async def exec(self, *_: str, **options: Any) -> Child:
        self.options = options
        mine = socket.socket(fileno=os.dup(options["pass_fds"][0]))
        self._reader, self._writer = await asyncio.open_connection(sock=mine)
        self._task = asyncio.create_task(self._serve())
        return self

    async def _serve(self) -> None:
        while True:
            try:
                what, size = HEADER.unpack(await self._reader.readexactly(HEADER.size))
                data = await self._reader.readexactly(size)
            except (OSError, EOFError):
                return
            name = what.rstrip(b"\0").decode()
            self.sent.append(name)
            for kind, reply in self.answer(name, data):
                self._writer.write(HEADER.pack(kind, len(reply)) + reply)
            if name == "close" or self.answer(name, data) is ENDS:
                self.end(0)

    async def wait(self) -> int:
        await self._ended.wait()
        return self.returncode or 0

    def end(self, code: int) -> None:
        if self.returncode is None:
            self.returncode = code  # type: ignore[assignment]
            self._ended.set()
            self._writer.close()


ENDS: list[tuple[bytes, bytes]] = []


def answers(name: str, data: bytes) -> list[tuple[bytes, bytes]]:
    if name == "ask":
        return [(BEGUN, b""), (REPLY, pickle.dumps(WorkerReply(trajectory=Trajectory(answer="3"))))]
    return [(REPLY, pickle.dumps(""))] if name in ("setup", "end") else [(BEGUN, b"")]


def lived(answer: Any, use: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Child, list[Any], Any]:
    """Start a worker whose process answers so, use it, and close it; returns how often it was buried too."""
    gone: list[Any] = []

    async def main() -> tuple[Child, list[Any], Any]:
        child = Child(answer)
        monkeypatch.setattr(asyncio, "create_subprocess_exec", child.exec)
        monkeypatch.setattr(worker_process.os, "killpg", lambda pid, how: child.end(-how))
        worker = WorkerProcess(gone.append)
        why = await worker.start(setup_of("half"))
        found = why if why else await use(worker, child)
        await worker.aclose()
        await asyncio.sleep(0)
        assert not worker.is_usable
        assert worker._writer.is_closing()
        return child, [one is worker for one in gone], found

    return asyncio.run(main())


def test_a_worker_is_asked_again_and_again_and_released_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = AgentTurn(id="a", call=asked("?", tmp_path))

    async def use(worker: WorkerProcess, child: Child) -> list[Any]:
        found = [await worker.ask(one), await worker.ask(one)]
        assert worker.is_usable
        await worker.end("a")
        assert worker.is_usable
        return found

    child, gone, found = lived(answers, use, monkeypatch)
    assert found == [WorkerReply(trajectory=Trajectory(answer="3"))] * 2
    assert (child.sent, child.returncode, gone) == (["setup", "ask", "ask", "end", "close"], 0, [True])
    assert child.options["start_new_session"] is True


def test_a_worker_that_cannot_open_the_agent_or_ends_meanwhile_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = lived(lambda *_: [(REPLY, pickle.dumps("no module"))], None, monkeypatch)[2]
    assert told == "no module"
    assert lived(lambda *_: ENDS, None, monkeypatch)[2] == ENDED


def test_an_agent_that_ends_its_process_has_failed_and_nothing_is_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = AgentTurn(id="a", call=asked("?", tmp_path))

    def dies(name: str, data: bytes) -> list[tuple[bytes, bytes]]:
        return [(BEGUN, b"")] if name == "ask" else answers(name, data)

    async def use(worker: WorkerProcess, child: Child) -> WorkerReply:
        asking = asyncio.create_task(worker.ask(one))
        while not worker._begun:
            await asyncio.sleep(0)
        child.end(7)
        reply = await asking
        await worker.end("a")
        return reply

    child, gone, found = lived(dies, use, monkeypatch)
    assert str(found.fault) == "the agent's process ended with exit code 7 before it had answered"
    assert (child.sent, gone) == (["setup", "ask"], [True])


def test_a_conversation_that_does_not_end_spoils_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "GRACE_S", 0.01)

    def silent(name: str, data: bytes) -> list[tuple[bytes, bytes]]:
        return [(BEGUN, b"")] if name == "end" else answers(name, data)

    async def use(worker: WorkerProcess, child: Child) -> bool:
        await worker.end("a")
        return worker.is_usable

    child, gone, usable = lived(silent, use, monkeypatch)
    assert (usable, child.returncode, gone) == (False, -9, [True])


# the main function


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    ended = threading.Event()
    monkeypatch.setattr(worker_main, "_end", ended.set)
    return ended


class Driver:
    """The driver's end of a worker's socket."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        self._file = own.makefile("rwb")

    def send(self, what: str, data: bytes = b"") -> None:
        self._file.write(HEADER.pack(what.encode(), len(data)) + data)
        self._file.flush()

    def receive(self) -> tuple[bytes, bytes]:
        what, size = HEADER.unpack(self._file.read(HEADER.size))
        return what.rstrip(b"\0"), self._file.read(size)

    def close(self) -> None:
        self._file.close()
        self._own.close()


@pytest.fixture
def sockets(ends: threading.Event) -> Iterator[tuple[Driver, socket.socket]]:
    own, other = socket.socketpair()
    own.settimeout(100)
    driver = Driver(own)
    with other:
        yield driver, other
        driver.close()
        for thread in [one for one in threading.enumerate() if one.name == "tfgrpo-driver"]:
            thread.join(100)  # it ends what `ends` stands for, as long as it does


def test_a_worker_says_whether_it_could_open_the_agent(
    sockets: tuple[Driver, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, other = sockets
    path: list[str] = []
    monkeypatch.setattr(worker_main.sys, "path", path)
    for agent, told in (("half", ""), ("nobody", "ActorError: ")):
        setup = replace(setup_of(agent), search=(str(ROOT / "tests"), "here"))
        driver.send("setup", pickle.dumps(setup))
        opened = worker_main._opened(other)
        assert path == [str(ROOT / "tests"), "here"]
        what, data = driver.receive()
        assert what == REPLY
        assert (opened is None) is bool(told)
        found = pickle.loads(data)
        assert found.startswith(told)
        assert bool(found) is bool(told)


def test_a_worker_answers_turns_ends_conversations_and_releases_its_agent(
    sockets: tuple[Driver, socket.socket], ends: threading.Event, tmp_path: Path
) -> None:
    driver, other = sockets
    ended, closed = list[str](), list[bool]()
    sleeping = asyncio.Event()

    class Agent:
        async def answer(self, turn: AgentTurn) -> WorkerReply:
            if turn.message != "sleep":
                return WorkerReply(trajectory=Trajectory(answer=turn.message or "one"))
            try:
                await sleeping.wait()
            except asyncio.CancelledError:
                return WorkerReply()
            raise AssertionError("nobody wakes it")

        async def end(self, id_: str) -> None:
            ended.append(id_)

        async def aclose(self) -> None:
            closed.append(True)
            raise RuntimeError("it cannot be released")

    agent: Any = Agent()
    thread = threading.Thread(target=lambda: asyncio.run(worker_main._serve(other, agent)))
    thread.start()
    one = AgentTurn(id="a", call=asked("?", tmp_path))
    driver.send("cancel")  # before anything is asked, which is nothing
    for message in (None, "two"):
        driver.send("ask", pickle.dumps(replace(one, message=message)))
        assert driver.receive() == (BEGUN, b"")
        what, data = driver.receive()
        assert (what, pickle.loads(data).trajectory.answer) == (REPLY, message or "one")
    driver.send("ask", pickle.dumps(replace(one, message="sleep")))
    assert driver.receive() == (BEGUN, b"")
    driver.send("cancel")
    assert pickle.loads(driver.receive()[1]) == WorkerReply()
    driver.send("end", b"a")
    assert driver.receive() == (REPLY, b"")
    driver.send("close")
    thread.join(100)
    assert (ended, closed, thread.is_alive(), ends.is_set()) == (["a"], [True], False, False)
    driver.close()
    assert ends.wait(100), "without its driver it ends"


@pytest.mark.parametrize("data", [b"", b"12", HEADER.pack(b"ask", 5) + b"1234"])
def test_a_worker_without_its_driver_has_received_nothing(data: bytes) -> None:
    own, other = socket.socketpair()
    with other:
        own.sendall(data)
        own.close()
        assert worker_main._received(other) is None
        worker_main._send(other, b"nobody reads it")


def test_a_worker_ends_what_its_agent_started_where_that_is_its_own_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(worker_main, "_exit", lambda code: done.append(code))
    monkeypatch.setattr(worker_main.os, "killpg", lambda *args: done.append(args))
    monkeypatch.setattr(worker_main.os, "getpgid", lambda _: 7)
    for pid in (7, 8):
        monkeypatch.setattr(worker_main.os, "getpid", lambda pid=pid: pid)
        worker_main._end()
    assert done == [(0, signal.SIGKILL), 0, 0]


@pytest.mark.parametrize(
    ("frames", "reply", "begun"),
    [
        ([(BEGUN, b""), (REPLY, b"data")], b"data", True),
        ([(REPLY, b"")], b"", False),
        ([(BEGUN, b"")], None, True),
        ([], None, False),
    ],
)
def test_a_reply_is_what_follows_the_word_that_the_agent_is_asked(
    frames: list[tuple[bytes, bytes]], reply: bytes | None, begun: bool
) -> None:
    async def main() -> tuple[bytes | None, bool]:
        worker: Any = WorkerProcess(lambda _: None)
        worker._reader = asyncio.StreamReader()
        for what, data in frames:
            worker._reader.feed_data(HEADER.pack(what, len(data)) + data)
        worker._reader.feed_eof()
        return await worker._receive(), worker._begun

    assert asyncio.run(main()) == (reply, begun)
