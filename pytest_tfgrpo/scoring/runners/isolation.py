"""Isolation: a program of a hostile project runs with limits, reaches nothing, and ends with its children."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.errors import ActorError, CheckError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.sandbox.programs.bubblewrap import Network, Sandbox, open_bwrap
from pytest_tfgrpo.sandbox.programs.cancelling import LOOK_S, require_going
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.processes import Channel, Start, finish, start
from pytest_tfgrpo.sandbox.programs.programs import needed
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.scoring.runners.protocol import Isolation

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
MEMORY_MAX = 8 << 30
"""Bytes of data of one process; interpreters reserve more than they use."""
FILE_MAX = 1 << 30
"""Bytes of one file."""
PROCESSES_MAX = 4096
"""Processes and threads of the user, whom older kernels count over the whole machine; none for root."""
TREE_MAX = 4 << 30
"""Bytes by which a run may grow its tree."""
FREE_MIN = 64 << 20
"""Bytes that stay free where the tree lies."""
OUTPUT_MAX = 65_536
"""The end of the output that is kept; the rest is read and dropped."""
CHUNK = 65_536
FEW = CHUNK // 16
GATHER_MS = 5.0
"""How long what comes in few bytes soon after the last is left to gather: each look costs both sides time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolatedProgram:
    """A program to run, and what it may see; with bubblewrap it sees the system's programs too."""

    argv: Sequence[str]
    tree: Path
    """Which it can write."""
    folder: str = "."
    """Of the tree, where it runs."""
    environment: Mapping[str, str]
    """PATH keeps what can be seen of it."""
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    isolation: Isolation = "bwrap"
    network: Network = "loopback"
    """With bubblewrap, one of its own; ``host``: the machine's."""
    apart: bool = False
    """Its locks of files have no effect, by which it and one in another sandbox could signal each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A private conversation with a program over its standard input, a socket that no file leads to."""

    request: bytes
    """What is sent to it."""
    receive: Callable[[bytes], bool]
    """Takes what it sends; returns False to have it ended."""
    deadline: Callable[[], float] = lambda: math.inf
    """When it is to be ended, by the monotonic clock; asked again after each message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolatedRun:
    """How an isolated program ended."""

    code: int | None
    """Exit code, negative for a signal; None when it was ended."""
    output: str
    """The end of what it printed, standard error among it."""
    elapsed_s: float
    stopped: str = ""
    """Why it was ended: ``time``, ``disk``, or ``exchange``."""


def run_isolated(
    program: IsolatedProgram,
    *,
    timeout_s: float,
    output_max: int = OUTPUT_MAX,
    exchange: Exchange | None = None,
) -> IsolatedRun:
    """Run a program until it and all that it started is gone.

    Raises OSError when it cannot be started, CheckError where there is no bubblewrap or no prlimit, and
    Cancelled.
    """
    words, environment = [*_limits(), *_moved(program.argv, program.folder)], program.environment
    with _home(program.isolation) as home:
        if program.isolation == "bwrap":
            box = _sandbox(tuple(program.readable), tuple(program.writable), program.network)
            passed = {name: value for name, value in environment.items() if name not in ("PATH", "HOME")}
            words, scrubbed = (
                _small_tmp(box.argv(words, program.tree)),
                box.environment(environment.get("PATH", SYSTEM_PATH), passed),
            )
        else:
            own = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "TMPDIR": home}
            scrubbed = {**own, **environment, "HOME": home}
        watch = _Watch(words, program.tree, scrubbed, output_max, exchange, apart=program.apart)
        return watch.run(timeout_s)


def interpreter(environment: BuiltEnvironment | None) -> tuple[str, tuple[Path, ...]]:
    """Return the Python that runs a workspace's programs, and what a sandbox must show for it."""
    if environment is not None and environment.python is not None:
        return str(environment.python), environment.readable
    shown = environment.readable if environment is not None else ()
    return sys.executable, (*_own_python(), *shown)


def variables(environment: BuiltEnvironment | None, tree: Path, python: str | None = None) -> dict[str, str]:
    """Return the environment variables of a workspace's programs: PATH, PYTHONPATH, and what is declared."""
    programs = [] if environment is None else [str(folder) for folder in environment.programs]
    if python is not None:
        programs.append(str(Path(python).parent))
    found = {} if environment is None else dict(environment.variables)
    found["PATH"] = os.pathsep.join(dict.fromkeys([*programs, *SYSTEM_PATH.split(os.pathsep)]))
    if environment is not None and environment.imports:
        found["PYTHONPATH"] = os.pathsep.join(str(tree / folder) for folder in environment.imports)
    return found


def require_isolation(isolation: Isolation) -> None:
    """Raise CheckError where programs cannot be isolated in this way."""
    if isolation == "bwrap":
        _bwrap()
    _limits()


class _Watch:
    """One program, its output and its conversation."""

    def __init__(
        self,
        argv: Sequence[str],
        tree: Path,
        environment: Mapping[str, str],
        output_max: int,
        exchange: Exchange | None,
        *,
        apart: bool,
    ) -> None:
        self._tree = tree
        self._exchange = exchange
        self._output_max = output_max
        self._tail = b""
        self._few = True
        self._unsent = memoryview(exchange.request if exchange else b"")
        self._stopped = ""
        self._free = _free(tree)
        self._look_at = 0.0
        self._ours: socket.socket | None = None
        self._output, written = os.pipe()
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(os.close, written)
                entry = self._entry(stack)
                launch = Start(
                    argv=argv,
                    folder=tree,
                    environment=environment,
                    files=(entry, written, written),
                    apart=apart,
                )
                self._channel: Channel = start(launch)
        except BaseException:
            self._close()
            raise

    def _entry(self, stack: contextlib.ExitStack) -> int:
        """Return the descriptor of the program's standard input, which `stack` closes."""
        if self._exchange is None:
            entry = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, entry)
            return entry
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        stack.callback(theirs.close)
        return theirs.fileno()

    def run(self, timeout_s: float) -> IsolatedRun:
        began = time.monotonic()
        try:
            code = self._watch(began + timeout_s)
        finally:
            self._channel.end()
            while (report := self._channel.read()) is not None and report[0] != "G":
                continue
            finish(self._channel, gone=report is not None)
            self._drain()
            self._close()
        return IsolatedRun(
            code=None if self._stopped else code,
            output=self._tail.decode("utf-8", "replace"),
            elapsed_s=time.monotonic() - began,
            stopped=self._stopped,
        )

    def _watch(self, deadline: float) -> int | None:
        """Return the exit code; None when the program must end, and `_stopped` says why."""
        ready, ending = select.poll(), select.poll()
        ready.register(self._output, select.POLLIN)
        ready.register(self._channel.fileno(), select.POLLIN)
        ending.register(self._channel.fileno(), select.POLLIN)
        slept = True
        while not self._stopped:
            ours = self._ours
            if ours is not None:
                ready.register(ours.fileno(), select.POLLIN | (select.POLLOUT if self._unsent else 0))
            left = self._left(deadline)
            if not slept and self._few and not self._unsent and not self._stopped:
                ending.poll(GATHER_MS)
            asked, self._few = time.monotonic(), True
            found = {fd for fd, _ in ready.poll(1000 * left)} if not self._stopped else set()
            slept = time.monotonic() - asked > GATHER_MS / 1000
            if self._output in found and not self._print():
                ready.unregister(self._output)
            if ours is not None and ours.fileno() in found:
                number = ours.fileno()
                if not self._talk(ours):
                    ready.unregister(number)
            if self._channel.fileno() in found and (code := self._reported()) is not None:
                return code
        return None

    def _left(self, deadline: float) -> float:
        """Return the seconds to wait for something; sets `_stopped` where a limit is reached."""
        require_going()
        now = time.monotonic()
        end = min(deadline, self._exchange.deadline() if self._exchange else math.inf)
        if now >= end:
            self._stopped = "time" if now >= deadline else "exchange"
        elif now >= self._look_at:
            self._look_at = now + LOOK_S
            free = _free(self._tree)
            if free < min(FREE_MIN, self._free // 2) or (
                self._free - free > TREE_MAX and _size(self._tree) > TREE_MAX
            ):
                self._stopped = "disk"
        return max(0.0, min(end, self._look_at) - now)

    def _reported(self) -> int | None:
        report = self._channel.read()
        if report is None:
            raise OSError(errno.ECHILD, "the process that watches it was killed")
        if report[0] == "E":
            raise OSError(report[1], os.strerror(report[1]))
        return report[1] if report[0] == "X" else None

    def _print(self) -> bool:
        chunk = os.read(self._output, CHUNK)
        self._few = self._few and len(chunk) < FEW
        self._tail = (self._tail + chunk)[-self._output_max :]
        return bool(chunk)

    def _talk(self, ours: socket.socket) -> bool:
        """Send and receive what is there; returns False when the other end is closed."""
        try:
            if self._unsent:
                self._unsent = self._unsent[ours.send(self._unsent) :]
            chunk = ours.recv(CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            chunk = b""
        if not chunk:
            self._ours = None
            ours.close()
            return False
        self._few = self._few and len(chunk) < FEW
        if self._exchange is not None and not self._exchange.receive(chunk):
            self._stopped = "exchange"
        return True

    def _drain(self) -> None:
        """Read what the program left in the pipe and the socket; nobody writes to them any more."""
        os.set_blocking(self._output, False)
        with contextlib.suppress(OSError):
            while self._print():
                continue
        while self._ours is not None and not self._stopped:
            before = self._ours
            with contextlib.suppress(OSError):
                if not select.select([before], [], [], 0)[0] or not self._talk(before):
                    break

    def _close(self) -> None:
        os.close(self._output)
        if self._ours is not None:
            self._ours.close()


@lru_cache(maxsize=1)
def _bwrap() -> tuple[str, bool]:
    """Return the path of bubblewrap, and whether it limits the size of a folder in memory."""
    try:
        program = open_bwrap()
    except ActorError as error:
        raise CheckError(str(error).replace("sandbox=", "check_sandbox=")) from error
    import subprocess

    told = subprocess.run([program, "--help"], capture_output=True, stdin=subprocess.DEVNULL)
    return program, b"--size" in told.stdout + told.stderr


@lru_cache(maxsize=64)
def _sandbox(readable: tuple[Path, ...], writable: tuple[Path, ...], network: Network) -> Sandbox:
    # "loopback" shows the files by which names are found; no server of the machine is relayed
    return Sandbox(bwrap=_bwrap()[0], readable=readable, writable=writable, network=network)


def _small_tmp(argv: list[str]) -> list[str]:
    """Return a command line of bubblewrap whose folders in memory hold no more than a file may."""
    if not _bwrap()[1]:
        return argv
    size = ["--size", str(FILE_MAX)]
    at = argv.index("--tmpfs")
    shared = [*size, "--tmpfs", "/dev/shm"]
    return [*argv[:at], *shared, *size, *argv[at:]]


@lru_cache(maxsize=1)
def _limits() -> tuple[str, ...]:
    program = shutil.which("prlimit", path=SYSTEM_PATH)
    if program is None:
        raise CheckError("a check of tests limits what they use with prlimit, which is not installed; "
                         "install util-linux")  # fmt: skip
    wanted = {"data": MEMORY_MAX, "fsize": FILE_MAX, "core": 0}
    if os.geteuid():
        wanted["nproc"] = PROCESSES_MAX
    return (program, *(f"--{name}={value}:{value}" for name, value in wanted.items()), "--")


@lru_cache(maxsize=1)
def _own_python() -> tuple[Path, ...]:
    """Return what this interpreter needs, with folders of packages that lie elsewhere."""
    packages = [Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    found = needed([sys.executable], SYSTEM_PATH, Path("/nonexistent"))
    more = [path for path in packages if path.is_dir() and not any(map(path.is_relative_to, found))]
    return (*found, *more)


def _moved(argv: Sequence[str], folder: str) -> Sequence[str]:
    """Return a command line that runs another one in a folder of the tree."""
    if folder in (".", ""):
        return argv
    return ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', folder, *argv]


@contextlib.contextmanager
def _home(isolation: Isolation) -> Iterator[str]:
    """Return the home of a program that has no /tmp of its own."""
    if isolation == "bwrap":
        yield ""
        return
    folder = tempfile.mkdtemp(prefix="tfgrpo-home-")
    try:
        yield folder
    finally:
        remove(Path(folder))


def _free(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize


def _size(folder: Path) -> int:
    """Return the bytes that a tree takes on its disk, as far as it can be read."""
    total, waiting = 0, [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
