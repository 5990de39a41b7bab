"""Start programs for a run, and end each with all its descendants; run as a script of its own.

The run sends sockets over standard input, here a socket too. Each gets a supervisor, a fork of this process,
that starts one program after the other and adopts what it leaves behind. When the run ends a program, or dies
in whatever way, all descendants of the program die. An interpreter per program would cost ten times as much.
Imports little, as the run waits for its start.
"""

from __future__ import annotations

import errno
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from os import _exit
from typing import Any

RECORD = struct.Struct("<ci")
"""What a supervisor reports: ``S``, process id; ``X``, exit code; ``E``, errno; ``G``, all are gone."""
HEADER = struct.Struct("<q")
"""What it is sent: the bytes of a request, TERMINATE, or END."""
TERMINATE, END = 0, -1
FILES = 3
"""Descriptors with a request: standard input, output and error."""
REAP_S = 5.0
AGAIN_MS = 5
SUBREAPER = 36
JOIN_SESSION_KEYRING = 1
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""As a filter of system calls knows them."""
REFUSED = {
    "x86_64": (163, 167, 168, 169, 172, 173, 175, 176, 246, 248, 249, 250, 298, 304, 313, 320, 321, 323,
               425, 426, 427),
    "aarch64": (89, 104, 105, 106, 142, 217, 218, 219, 224, 225, 241, 265, 273, 280, 282, 294, 425, 426, 427),
}  # fmt: skip
"""Numbers of what no program in a sandbox may call, as in containers: add_key, request_key, keyctl, bpf,
perf_event_open, userfaultfd, io_uring, open_by_handle_at, modules, kexec, swap, reboot, ports, accounting.
Mounts in a user namespace of its own may be made: a sandbox of the agent's own needs them."""
APART = {
    "x86_64": (73, 72, (27, 253, 294, 300, 327, 451)), "aarch64": (32, 25, (232, 26, 262, 286, 451)),
}  # fmt: skip
"""What tells programs in two sandboxes of each other by files that both see, where they must not: flock and
fcntl, whose locks have no effect then; mincore, inotify, fanotify, preadv2 and cachestat are not there."""
LOCKING, LEASING = (6, 7, 37, 38), (1024, 1025, 1026)
"""Commands of fcntl: F_SETLK, F_SETLKW and those of open files; leases, and notes of changes in a folder."""
KEYCTL = {"x86_64": 250, "aarch64": 219}
OTHER_ABI = 0x40000000
"""x86-64 has each call a second time from here on."""
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD)
"""Signals that Python handles or ignores, and a program must not."""


class Supervisor:
    """Watches one program at a time."""

    def __init__(self, channel: socket.socket, run: list[int]) -> None:
        """`run` is ready when the run has ended, where the system says so."""
        _adopt_orphans()
        self.channel = channel
        self.woken = _child_signals()
        self.program = 0
        self.closing = self.relaying = False
        self.poll = _poll(channel.fileno(), self.woken, *run)

    def serve(self) -> None:
        """Serve requests to the end of the run; nothing is left running."""
        try:
            while True:
                for file, _ in self.poll.poll(AGAIN_MS if self.closing else None):
                    if file == self.woken:
                        os.read(file, 4096)
                    elif file != self.channel.fileno() or not self._listen():
                        return
                if not self._bury():
                    return
        finally:
            _signal_group(self.program, signal.SIGKILL)
            _sweep()

    def _listen(self) -> bool:
        """Handle what the run sends; returns False at its end."""
        head, files = _with_files(self.channel, HEADER.size, FILES)
        if len(head) < HEADER.size:
            return False
        size = HEADER.unpack(head)[0]
        if size == TERMINATE:
            _signal_group(self.program, signal.SIGTERM)
        elif size == END:
            self.closing = True
            _signal_group(self.program, signal.SIGKILL)
        else:
            self._start(marshal.loads(_received(self.channel, size)), files)
        return True

    def _start(self, request: Mapping[str, Any], files: list[int]) -> None:
        try:
            self.relaying = request["loopback"]
            self.program = _spawn_with_relays(request, files) if self.relaying else _spawn(request, files)
        except OSError as error:
            self._report(b"E", error.errno or errno.EIO)
        else:
            self._report(b"S", self.program)
        for file in files:
            os.close(file)

    def _bury(self) -> bool:
        """Report that the program has ended; once nobody waits any more, kill what it left behind.

        Returns False if there can be no other program: relays of the last one would still run.
        """
        ended, others = _reap()
        if self.program in ended:
            self._report(b"X", ended[self.program])
        if self.closing and others:
            for pid in _descendants(os.getpid()):
                _kill(pid)
        elif self.closing and self.relaying:
            return False
        elif self.closing:
            self.program, self.closing = 0, False
            self._report(b"G", 0)
        return True

    def _report(self, kind: bytes, value: int) -> None:
        try:
            self.channel.send(RECORD.pack(kind, value), getattr(socket, "MSG_NOSIGNAL", 0))
        except OSError:
            return  # nobody listens any more


def main() -> None:
    """Fork a supervisor for each socket that comes, until the run ends."""
    control, run = socket.socket(fileno=0), _end_of(os.getppid())
    _adopt_orphans()
    woken, supervisors = _child_signals(), set[int]()
    poll = _poll(0, woken, *run)
    while True:
        ready = {file for file, _ in poll.poll()}
        if woken in ready:
            os.read(woken, 4096)
            supervisors.difference_update(_reap()[0])
            for orphan in set(_children(os.getpid())) - supervisors:  # of a supervisor that was killed
                _kill(orphan)
        channels = _with_files(control, 1, 1)[1] if 0 in ready else []
        if ready.intersection(run) or (0 in ready and not channels):
            break
        for channel in channels:
            if pid := os.fork():
                supervisors.add(pid)
                os.close(channel)
            else:
                _supervise(channel, run)
    _sweep()


def _supervise(channel: int, run: list[int]) -> None:
    try:
        os.dup2(1, 0)  # the socket of the run; a descriptor below 3 must stay taken
        Supervisor(socket.socket(fileno=channel), run).serve()
    finally:
        _exit(0)


def _with_files(channel: socket.socket, size: int, count: int) -> tuple[bytes, list[int]]:
    """Return a message and its descriptors, which no program inherits."""
    head, files, _, _ = socket.recv_fds(channel, size, count)
    for file in files:
        os.set_inheritable(file, False)
    return head, files


def _received(channel: socket.socket, size: int) -> bytes:
    parts = []
    while size > 0:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            _exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _sweep() -> None:
    """Kill all descendants, however often they fork; what they orphan comes here."""
    deadline = time.monotonic() + REAP_S
    while _reap()[1] and time.monotonic() < deadline:
        for pid in _descendants(os.getpid()):
            _kill(pid)
        time.sleep(AGAIN_MS / 1000)


def _spawn(request: Mapping[str, Any], files: list[int]) -> int:
    """Return the process id of a program in a session of its own; raises OSError when it cannot be started.

    A name without a slash is looked for on the PATH of the program's environment.
    """
    argv, environment = request["argv"], request["environment"]
    failure: OSError | None = None
    filtered = -1
    if os.path.basename(argv[0]) == b"bwrap":  # noqa: PTH119
        _leave_keys()
        filtered = _filter(apart=request["apart"])
        argv = [argv[0], *([b"--seccomp", b"%d" % filtered] if filtered >= 0 else []), *argv[1:]]
    places = [b""] if b"/" in argv[0] else environment.get(b"PATH", os.defpath.encode()).split(b":")
    os.chdir(request["folder"])
    try:
        for place in places:
            try:
                return os.posix_spawn(
                    os.path.join(place, argv[0]),  # noqa: PTH118
                    argv,
                    environment,
                    file_actions=[(os.POSIX_SPAWN_DUP2, file, target) for target, file in enumerate(files)],
                    setsid=True,
                    setsigdef=RESTORED,
                )
            except OSError as error:
                if failure is None or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    failure = error
    finally:
        os.chdir("/")
        if filtered >= 0:
            os.close(filtered)
    raise failure or OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def _leave_keys() -> None:
    """Join a session keyring of one's own: namespaces do not keep the kernel's keys of a login apart."""
    import ctypes

    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)


def _filter(*, apart: bool) -> int:
    """Return an open file with a filter of system calls for bubblewrap; -1 where the machine's are not known.

    See seccomp(2): of classic BPF a load, jumps if equal or not less, and a return of an errno; 0 is success.
    """
    machine = os.uname().machine
    if machine not in REFUSED:
        return -1
    load, equal, least, leave = 0x20, 0x15, 0x35, 0x06
    call, architecture, command = 0, 4, 24  # offsets; the command of fcntl is its second argument
    allow = (leave, 0, 0, 0x7FFF0000)
    end = {code: (leave, 0, 0, 0x00050000 | code) for code in (0, errno.EPERM, errno.EINVAL, errno.ENOSYS)}
    refuse = end[errno.EPERM]
    rows = [(load, 0, 0, architecture), (equal, 1, 0, ARCHITECTURES[machine]), refuse, (load, 0, 0, call)]
    rows += [(least, 0, 1, OTHER_ABI), refuse]
    for number in REFUSED[machine]:
        rows += [(equal, 0, 1, number), refuse]
    if apart:
        locking, files, absent = APART[machine]
        rows += [(equal, 0, 1, locking), end[0]]
        for number in absent:
            rows += [(equal, 0, 1, number), end[errno.ENOSYS]]
        rows += [(equal, 1, 0, files), allow, (load, 0, 0, command)]
        for number in (*LOCKING, *LEASING):
            rows += [(equal, 0, 1, number), end[0 if number in LOCKING else errno.EINVAL]]
    file = os.memfd_create("filter", 0)
    os.write(file, b"".join(struct.pack("=HBBI", *row) for row in [*rows, allow]))
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _spawn_with_relays(request: Mapping[str, Any], files: list[int]) -> int:
    """Start bubblewrap, with a relay inside to each server on this machine's loopback.

    The sandbox waits until they listen in its network, which has nothing else.
    """
    (told, info), (wait, go) = os.pipe(), os.pipe()
    for inherited in (info, wait):
        os.set_inheritable(inherited, True)
    program, *rest = request["argv"]
    argv = [program, b"--info-fd", b"%d" % info, b"--block-fd", b"%d" % wait, *rest]
    try:
        pid = _spawn({**request, "argv": argv}, files)
    except OSError:
        os.close(told)
        os.close(go)
        raise
    finally:
        os.close(info)
        os.close(wait)
    try:
        if child := _sandboxed(told):
            _open_relays(child)
            os.write(go, b"x")
    except OSError:
        _signal_group(pid, signal.SIGKILL)
        raise
    finally:
        os.close(told)
        os.close(go)
    return pid


def _sandboxed(told: int) -> int | None:
    """Return the process id of the first process in a sandbox; None when bubblewrap has ended instead."""
    text = b""
    while b"}" not in text:
        part = os.read(told, 4096)
        if not part:
            return None
        text += part
    return int(text.split(b'"child-pid":')[1].split(b",")[0].strip(b" }\n"))


def _open_relays(child: int) -> None:
    """Load the neighbour of this file, which few programs need, and have it open relays."""
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    importlib.import_module("relays").open_relays(child)


def _reap() -> tuple[dict[int, int], bool]:
    """Return the exit codes of children that have ended, by process id, and whether others are left."""
    ended: dict[int, int] = {}
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    except ChildProcessError:
        return ended, False
    return ended, True


def _descendants(pid: int) -> list[int]:
    found, left = [], [pid]
    while left:
        left = [child for one in left for child in _children(one)]
        found += left
    return found


def _children(pid: int) -> list[int]:
    """Return the children of a process; without /proc none."""
    try:
        lists = [f"/proc/{pid}/task/{task}/children" for task in _list(f"/proc/{pid}/task")]
        return [int(child) for name in lists for child in _read(name).split()]
    except FileNotFoundError:
        return _children_by_scan(pid) if os.path.exists(f"/proc/{pid}") else []  # noqa: PTH110
    except OSError:
        return []


def _children_by_scan(pid: int) -> list[int]:
    """Return the children of a process where the kernel keeps no list of them."""
    found = []
    for name in filter(str.isdigit, _list("/proc")):
        try:
            status = _read(f"/proc/{name}/stat")
        except OSError:
            continue
        if int(status.rpartition(b")")[2].split()[1]) == pid:
            found.append(int(name))
    return found


def _read(name: str) -> bytes:
    with open(name, "rb") as file:  # noqa: PTH123 - pathlib would double the time to start
        return file.read()


def _list(folder: str) -> list[str]:
    return os.listdir(folder)  # noqa: PTH208


def _poll(*files: int) -> select.poll:
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return poll


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _signal_group(group: int, number: int) -> None:
    try:
        if group:
            os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _end_of(pid: int) -> list[int]:
    """Return a descriptor that is ready when a process has ended; none where the system has no such thing."""
    try:
        return [os.pidfd_open(pid)]
    except (AttributeError, OSError):
        return []


def _child_signals() -> int:
    """Return a descriptor that is ready when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    gc.disable()
    main()
