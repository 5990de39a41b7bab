"""The supervisor of programs, a function at a time; with processes: `tests/slow/sandbox`."""

import errno
import marshal
import os
import signal
import socket
import struct
from typing import Any

import pytest

from pytest_tfgrpo.sandbox.programs import supervisor
from pytest_tfgrpo.sandbox.programs.supervisor import HEADER, RECORD, Supervisor

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
MACHINES = {
    # keyctl, flock, fcntl, inotify_init1 or fanotify_init, read
    "x86_64": (0xC000003E, 250, 73, 72, 294, 0),
    "aarch64": (0xC00000B7, 219, 32, 25, 262, 63),
}


def answer(program: bytes, number: int, architecture: int, command: int = 0) -> int:
    """Run classic BPF as the kernel does, over what it knows of a system call."""
    rows: list[tuple[int, int, int, int]] = list(struct.iter_unpack("=HBBI", program))
    data = {0: number, 4: architecture, 24: command}
    at = loaded = 0
    while True:
        code, yes, no, value = rows[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            loaded = data[value]
        else:
            assert code in (0x15, 0x35)
            at += yes if (loaded == value if code == 0x15 else loaded >= value) else no


def filter_for(monkeypatch: pytest.MonkeyPatch, machine: str, *, apart: bool) -> bytes:
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("Linux", "here", "1", "1", machine)))
    file = supervisor._filter(apart=apart)
    try:
        return os.read(file, 1 << 16)
    finally:
        os.close(file)


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_a_sandbox_may_make_all_calls_but_those_that_reach_out_of_it(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    architecture, keys, flock, fcntl, watch, read = MACHINES[machine]
    program = filter_for(monkeypatch, machine, apart=False)
    refused = {number for number in range(512) if answer(program, number, architecture) != ALLOW}
    assert refused == set(supervisor.REFUSED[machine])
    assert keys in refused
    assert not refused & {flock, fcntl, watch, read}
    assert {answer(program, number, architecture) for number in refused} == {ERRNO | errno.EPERM}
    assert answer(program, read, 0x40000003) == ERRNO | errno.EPERM
    assert answer(program, 0x40000000, architecture) == ERRNO | errno.EPERM
    assert answer(program, 0x3FFFFFFF, architecture) == ALLOW


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_a_sandbox_apart_neither_locks_nor_watches_files(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    architecture, keys, flock, fcntl, watch, read = MACHINES[machine]
    program = filter_for(monkeypatch, machine, apart=True)
    found = {number: answer(program, number, architecture) for number in (keys, flock, watch, read)}
    assert found == {keys: ERRNO | errno.EPERM, flock: ERRNO, watch: ERRNO | errno.ENOSYS, read: ALLOW}
    absent = {n for n in range(512) if answer(program, n, architecture) == ERRNO | errno.ENOSYS}
    assert absent == set(supervisor.APART[machine][2])
    commands = {command: answer(program, fcntl, architecture, command) for command in range(1200)}
    assert {command for command, code in commands.items() if code == ERRNO} == {6, 7, 37, 38}
    leases = {command for command, code in commands.items() if code == ERRNO | errno.EINVAL}
    assert leases == {1024, 1025, 1026}
    assert {code for n, code in commands.items() if n not in {6, 7, 37, 38} | leases} == {ALLOW}


def test_a_machine_whose_calls_are_not_known_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("Linux", "here", "1", "1", "riscv64")))
    assert supervisor._filter(apart=True) == -1


@pytest.mark.parametrize(
    ("said", "child"),
    [
        (['{\n    "child-pid": 42,\n    "net-namespace": 7\n}\n'], 42),
        (['{"child-', 'pid": 4711 }'], 4711),
        (['{ "child-pid": '], None),
        ([], None),
    ],
    ids=["bubblewrap", "in parts", "cut off", "nothing"],
)
def test_the_first_process_of_a_sandbox_is_what_bubblewrap_says(
    monkeypatch: pytest.MonkeyPatch, said: list[str], child: int | None
) -> None:
    parts = iter([*(part.encode() for part in said), b""])
    monkeypatch.setattr("os.read", lambda file, size: next(parts))
    assert supervisor._sandboxed(5) == child


def processes(monkeypatch: pytest.MonkeyPatch, parents: dict[int, int], *, listed: bool) -> None:
    """Let `/proc` hold processes, each with its parent; where not `listed`, no lists of children."""

    def read(name: str) -> bytes:
        pid, what = int(name.split("/")[2]), name.split("/")[-1]
        if pid not in parents or (what == "children" and not listed):
            raise FileNotFoundError(name)
        if what == "stat":
            return b"%d (a ) 1 S 9) S %d 5 5" % (pid, parents[pid])
        return b" ".join(b"%d" % child for child, parent in parents.items() if parent == pid)

    def names(folder: str) -> list[str]:
        if folder == "/proc":
            return ["self", *(str(pid) for pid in parents), "999"]
        if int(folder.split("/")[2]) not in parents:
            raise FileNotFoundError(folder)
        return [folder.split("/")[2]]

    monkeypatch.setattr(supervisor, "_read", read)
    monkeypatch.setattr(supervisor, "_list", names)
    monkeypatch.setattr("os.path.exists", lambda name: int(name.split("/")[2]) in parents)


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_found_at_every_depth(monkeypatch: pytest.MonkeyPatch, listed: bool) -> None:
    processes(monkeypatch, {1: 0, 10: 1, 11: 10, 12: 10, 13: 11, 14: 13, 20: 1}, listed=listed)
    assert sorted(supervisor._descendants(10)) == [11, 12, 13, 14]
    assert supervisor._descendants(14) == []
    assert supervisor._descendants(77) == []


def test_children_that_may_not_be_read_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> list[str]:
        raise PermissionError(folder)

    monkeypatch.setattr(supervisor, "_list", refuse)
    assert supervisor._children(10) == []


def test_all_children_that_have_ended_are_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[tuple[int, int]] = [(10, 3 << 8), (11, signal.SIGKILL), (0, 0)]
    monkeypatch.setattr("os.waitpid", lambda pid, how: left.pop(0))
    assert supervisor._reap() == ({10: 3, 11: -signal.SIGKILL}, True)

    def none(pid: int, how: int) -> tuple[int, int]:
        raise ChildProcessError

    monkeypatch.setattr("os.waitpid", none)
    assert supervisor._reap() == ({}, False)


def test_no_signal_goes_to_a_group_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []

    def kill(group: int, number: int) -> None:
        sent.append((group, number))
        raise ProcessLookupError

    monkeypatch.setattr("os.killpg", kill)
    monkeypatch.setattr("os.kill", kill)
    supervisor._signal_group(0, signal.SIGKILL)
    assert sent == []
    supervisor._signal_group(42, signal.SIGTERM)
    supervisor._kill(43)
    assert sent == [(42, signal.SIGTERM), (43, signal.SIGKILL)]


Spawned = list[tuple[str, list[bytes], dict[str, Any]]]


def spawned(
    monkeypatch: pytest.MonkeyPatch, failures: dict[bytes, int], argv: list[bytes], path: bytes
) -> Any:
    """Start a program where some places fail; return what was tried, and the process or the errno."""
    tried: Spawned = []
    folders: list[bytes | str] = []

    def start(place: bytes, words: list[bytes], environment: dict[bytes, bytes], **options: Any) -> int:
        tried.append((os.fsdecode(place), words, options))
        if place in failures:
            raise OSError(failures[place], "no")
        return 42

    monkeypatch.setattr("os.posix_spawn", start)
    monkeypatch.setattr("os.chdir", folders.append)
    monkeypatch.setattr(supervisor, "_leave_keys", lambda: folders.append("keys"))
    request = {"argv": argv, "environment": {b"PATH": path}, "folder": b"/work", "apart": False}
    try:
        result = supervisor._spawn(request, [7, 8, 9])
    except OSError as error:
        result = -(error.errno or 0)
    assert folders[-2:] == [b"/work", "/"]
    return result, tried, folders[:-2]


@pytest.mark.parametrize(
    ("argv", "failures", "result", "places"),
    [
        ([b"tool", b"-x"], {}, 42, ["/a/tool"]),
        (
            [b"tool"],
            {b"/a/tool": errno.ENOENT, b"/b/tool": errno.ENOTDIR},
            42,
            ["/a/tool", "/b/tool", "/c/tool"],
        ),
        (
            [b"tool"],
            {b"/a/tool": errno.ENOENT, b"/b/tool": errno.EACCES, b"/c/tool": errno.ENOTDIR},
            -errno.EACCES,
            ["/a/tool", "/b/tool", "/c/tool"],
        ),
        ([b"./tool"], {b"./tool": errno.ENOENT}, -errno.ENOENT, ["./tool"]),
    ],
    ids=["first", "third", "the telling failure", "a path"],
)
def test_a_program_is_looked_for_on_the_path_of_its_environment(
    monkeypatch: pytest.MonkeyPatch,
    argv: list[bytes],
    failures: dict[bytes, int],
    result: int,
    places: list[str],
) -> None:
    found, tried, before = spawned(monkeypatch, failures, argv, b"/a:/b:/c")
    assert (found, [place for place, _, _ in tried]) == (result, places)
    assert (tried[0][1], before) == (argv, [])
    options = tried[0][2]
    assert options["file_actions"] == [(os.POSIX_SPAWN_DUP2, 7 + n, n) for n in range(3)]
    assert options["setsid"] is True
    assert set(options["setsigdef"]) == {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD}


def test_bubblewrap_gets_a_filter_and_leaves_the_keys_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    monkeypatch.setattr("os.close", closed.append)
    monkeypatch.setattr(supervisor, "_filter", lambda *, apart: -1 if apart else 33)
    found, tried, before = spawned(monkeypatch, {}, [b"/usr/bin/bwrap", b"--x"], b"")
    assert (found, tried[0][1]) == (42, [b"/usr/bin/bwrap", b"--seccomp", b"33", b"--x"])
    assert (before, closed) == (["keys"], [33])
    monkeypatch.setattr(supervisor, "_filter", lambda *, apart: -1)
    assert spawned(monkeypatch, {}, [b"bwrap", b"--x"], b"/a")[1][0][1] == [b"bwrap", b"--x"]
    assert closed == [33]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a supervisor without a process, the run's end of its channel, and the signals that it sends."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(supervisor, "_signal_group", lambda group, number: signals.append((group, number)))
    monkeypatch.setattr(supervisor, "_kill", lambda pid: signals.append((pid, 0)))
    monkeypatch.setattr(supervisor, "_adopt_orphans", lambda: None)
    monkeypatch.setattr(supervisor, "_child_signals", lambda: theirs.fileno())
    with ours, theirs:
        yield Supervisor(theirs, []), ours, signals


def reports(channel: socket.socket) -> list[tuple[bytes, int]]:
    try:
        return list(RECORD.iter_unpack(channel.recv(1 << 12)))
    except BlockingIOError:
        return []


def test_a_supervisor_hears_what_the_run_sends(watched: Any) -> None:
    one, run, signals = watched
    one.program = 42
    run.send(HEADER.pack(0))
    assert one._listen() is True
    assert (one.closing, signals) == (False, [(42, signal.SIGTERM)])
    run.send(HEADER.pack(-1))
    assert one._listen() is True
    assert (one.closing, signals[1:]) == (True, [(42, signal.SIGKILL)])
    run.close()
    assert one._listen() is False


@pytest.mark.parametrize(
    ("loopback", "failure", "report"),
    [
        (False, None, (b"S", 42)),
        (True, None, (b"S", 43)),
        (False, OSError(errno.EACCES, "no"), (b"E", errno.EACCES)),
        (False, OSError("no"), (b"E", errno.EIO)),
    ],
    ids=["plain", "loopback", "refused", "without a number"],
)
def test_a_supervisor_reports_whether_a_program_started(
    monkeypatch: pytest.MonkeyPatch, watched: Any, loopback: bool, failure: OSError | None, report: Any
) -> None:
    one, run, _ = watched
    got: list[Any] = []

    def start(pid: int) -> Any:
        def spawn(request: Any, files: list[int]) -> int:
            got.extend([request["argv"], len(files), *(os.get_inheritable(file) for file in files)])
            if failure:
                raise failure
            return pid

        return spawn

    monkeypatch.setattr(supervisor, "_spawn", start(42))
    monkeypatch.setattr(supervisor, "_spawn_with_relays", start(43))
    request = marshal.dumps({"argv": [b"tool", b"x" * 3000], "loopback": loopback})
    socket.send_fds(run, [HEADER.pack(len(request))], [run.fileno()] * 3)
    run.send(request[:1000])
    run.send(request[1000:])
    assert one._listen() is True
    assert reports(run) == [report]
    assert got == [[b"tool", b"x" * 3000], 3, False, False, False]
    assert (one.program, one.relaying) == (0 if failure else report[1], loopback)


@pytest.mark.parametrize(
    ("closing", "relaying", "ended", "others", "goes_on", "reported", "killed"),
    [
        (False, False, {42: 3}, True, True, [(b"X", 3)], []),
        (False, False, {41: 3}, True, True, [], []),
        (True, False, {42: -9}, True, True, [(b"X", -9)], [(50, 0), (51, 0)]),
        (True, False, {42: -9}, False, True, [(b"X", -9), (b"G", 0)], []),
        (True, True, {}, False, False, [], []),
        (False, True, {}, False, True, [], []),
    ],
    ids=["ended", "an orphan ended", "left others behind", "all gone", "had relays", "runs with relays"],
)
def test_a_supervisor_kills_what_a_program_left_once_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, watched: Any, closing: bool, relaying: bool, ended: dict[int, int],
    others: bool, goes_on: bool, reported: list[Any], killed: list[Any],
) -> None:  # fmt: skip
    one, run, signals = watched
    monkeypatch.setattr(supervisor, "_reap", lambda: (ended, others))
    monkeypatch.setattr(supervisor, "_descendants", lambda pid: [50, 51])
    one.program, one.closing, one.relaying = 42, closing, relaying
    assert one._bury() is goes_on
    assert (reports(run), signals) == (reported, killed)
    over = (b"G", 0) in reported
    assert (one.program, one.closing) == ((0, False) if over else (42, closing))


def test_a_supervisor_whose_run_has_ended_kills_its_program(
    monkeypatch: pytest.MonkeyPatch, watched: Any
) -> None:
    one, run, signals = watched
    swept: list[bool] = []
    monkeypatch.setattr(supervisor, "_sweep", lambda: swept.append(True))
    one.woken, one.program = -1, 42
    run.close()
    one.serve()
    one._report(b"X", 0)  # to nobody
    assert (signals, swept) == ([(42, signal.SIGKILL)], [True])


def test_a_request_that_is_cut_off_ends_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(supervisor, "_exit", leave)
    with theirs:
        with ours:
            ours.send(b"half")
        with pytest.raises(SystemExit) as caught:
            supervisor._received(theirs, 8)
    assert caught.value.code == 0
