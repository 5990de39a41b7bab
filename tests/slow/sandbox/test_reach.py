"""What an agent can read, write and reach: every cell of the table in docs/security.md."""

import asyncio
import ctypes
import json
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.engine.attempts.attempt import attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs.processes import close_fork_server
from pytest_tfgrpo.sandbox.workspace import Workspace

PAGE = ROOT / "docs" / "security.md"
MODES: dict[str, dict[str, Any]] = {
    "no sandbox": {"sandbox": "none"},
    "`bwrap`": {"sandbox": "bwrap"},
    "`bwrap`, network `loopback`": {"sandbox": "bwrap", "sandbox_network": "loopback"},
    "`bwrap`, network `host`": {"sandbox": "bwrap", "sandbox_network": "host"},
}


def table() -> dict[tuple[str, str], str]:
    """Return the cells of the page by row and column."""
    text = PAGE.read_text(encoding="utf-8").split("<!-- table: reach -->\n")[1].partition("<!-- end")[0]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {(row[0], mode): cell for row in rows for mode, cell in zip(head[1:], row[1:], strict=True)}


AGENT = """
import contextlib, ctypes, json, os, pathlib, signal, socket, subprocess, sys

AT = json.loads({at!r})

def reads(*names):
    found = []
    for name in names:
        try:
            found.append(pathlib.Path(AT[name]).read_text() != "")
        except OSError:
            found.append(False)
    return found

def writes(*names):
    found = []
    for name in names:
        try:
            with open(AT[name], "a") as file:
                file.write(" ")
            found.append(True)
        except OSError:
            found.append(False)
    return found

def opens(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True

def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(100)
        try:
            sock.connect(address)
            return sock.recv(2) == b"hi"
        except OSError:
            return False

def tcp(name):
    return [connects(socket.AF_INET, tuple(AT[name]))]

def others():
    running = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    lines = []
    for pid in running:
        with contextlib.suppress(OSError):  # it has just ended
            lines.append(pathlib.Path("/proc", pid, "cmdline").read_bytes())
    return [any(b"pytest" in line for line in lines)]

def climbs():
    write = "exec 3>> /proc/sys/kernel/core_pattern"
    tries = (write, "mount -t proc proc /proc && " + write)
    run = [subprocess.run(["unshare", *how, "sh", "-c", one], capture_output=True).returncode
           for one in tries for how in (["-Ur"], ["-Urpfm"], ["-Um"])]
    return [0 in run]

def capable():
    status = pathlib.Path("/proc/self/status").read_text()
    has = int(status.partition("CapEff:")[2].split()[0], 16) != 0
    call = ctypes.CDLL(None).mount
    mounts = call(b"none", AT["mountpoint"].encode(), b"tmpfs", 0, None) == 0
    if mounts:
        ctypes.CDLL(None).umount(AT["mountpoint"].encode())
    return [has, mounts]

def keys():
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    add, keyctl = {{"x86_64": (248, 250), "aarch64": (217, 219)}}[os.uname().machine]
    session, user, search = ctypes.c_long(-3), ctypes.c_long(-4), 10
    named = b"user", b"tfgrpo-" + AT["key"].encode()
    reads = call(keyctl, search, session, *named, 0) > 0
    writes = [call(add, *named, b"x", 1, where) > 0 for where in (session, user)]
    return [reads, *writes]

probes = {{
    "read its program and its workspace": lambda: reads("program", "own"),
    "read what `sandbox_readable` lists": lambda: reads("readable"),
    "read other files of your home": lambda: reads("home"),
    "read the project, its scenarios and checks": lambda: reads("scenario", "source"),
    "read the output folder: journals, reports": lambda: reads("journal"),
    "read workspaces of other rollouts": lambda: reads("other"),
    "read environment variables that `sandbox_env` does not list":
        lambda: ["SOME_KEY" in os.environ or b"SOME_KEY" in pathlib.Path("/proc/self/environ").read_bytes()],
    "read which other processes run": others,
    "write to its workspace": lambda: writes("own"),
    "write to what `sandbox_writable` lists": lambda: writes("writable"),
    "write to its program, the project, the output folder, your home":
        lambda: writes("program", "source", "journal", "home"),
    "write to kernel settings (`/proc/sys`)": lambda: [opens("/proc/sys/kernel/core_pattern")],
    "write to them from a new user namespace": climbs,
    "have capabilities, or mount": capable,
    "read the kernel's keys of your login, and leave some": keys,
    "reach Unix sockets in folders (Docker, D-Bus, ssh-agent)":
        lambda: [connects(socket.AF_UNIX, AT["socket"])],
    "reach abstract Unix sockets": lambda: [connects(socket.AF_UNIX, "\\0" + AT["abstract"])],
    "reach servers on this machine's loopback": lambda: tcp("loopback"),
    "reach other addresses": lambda: tcp("address"),
}}
found = {{name: probe() for name, probe in probes.items()}}
found["given"] = [os.environ.get("LISTED") == "yes", os.environ["HOME"], sorted(os.environ)]
print(json.dumps({{"answer": json.dumps(found)}}))
"""


def local_address() -> str:
    """Return an address of this machine that is not loopback; without one, loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Give a folder outside /tmp, which every sandbox has to itself anyway."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def targets(place: Path) -> Iterator[dict[str, Any]]:
    """Make everything that agents try to read, write and reach."""
    names = {
        "home": "home/.ssh/id", "readable": "home/.config/agent", "writable": "home/.cache/agent",
        "program": "home/project/agent.py", "scenario": "home/project/a.scenario.yaml",
        "source": "home/project/src.py", "journal": "home/project/out/p/runs/r/journal.jsonl",
        "other": "work/other/answer.txt", "own": "work/own/notes.txt",
    }  # fmt: skip
    at: dict[str, Any] = {name: str(place / where) for name, where in names.items()}
    for name, where in at.items():
        Path(where).parent.mkdir(parents=True, exist_ok=True)
        Path(where).write_text(name)
    at["mountpoint"] = str(place / "work" / "own" / "mountpoint")
    with ExitStack() as stack:
        for family, name, where in (
            (socket.AF_UNIX, "socket", str(place / "docker.sock")),
            (socket.AF_UNIX, "abstract", f"\0tfgrpo-{os.getpid()}"),
            (socket.AF_INET, "loopback", ("127.0.0.1", 0)),
            (socket.AF_INET, "address", (local_address(), 0)),
        ):
            server = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            server.bind(where)
            server.listen(64)
            bound = server.getsockname()
            at[name] = bound.decode().lstrip("\0") if isinstance(bound, bytes) else bound
            stack.enter_context(Greeting(server))
        Path(at["mountpoint"]).mkdir()
        at["key"] = secrets.token_hex(8)
        add_key(at["key"])
        close_fork_server()  # one that another test started has the keyring of before
        yield at


def add_key(name: str) -> bool:
    """Add a key to this process's session, as a login does; return whether the kernel lets us."""
    number = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    session = ctypes.c_long(-3)
    return int(ctypes.CDLL(None).syscall(number, b"user", f"tfgrpo-{name}".encode(), b"x", 1, session)) > 0


def may_mount() -> list[bool]:
    """Return whether this process has capabilities, and that to mount."""
    has = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    return [has != 0, bool(has >> 21 & 1)]


class Greeting:
    """Answers every connection to a listening socket with "hi"."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            with peer:
                peer.sendall(b"hi")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()


@pytest.fixture(scope="module")
def found(place: Path, targets: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return what an agent found out in a mode; each mode is tried once."""
    results: dict[str, dict[str, Any]] = {}

    def find(mode: str) -> dict[str, Any]:
        if MODES[mode]["sandbox"] != "none":
            require_tool("bwrap")
        if mode not in results:
            results[mode] = explore(place, targets, MODES[mode])
        return results[mode]

    return find


def explore(place: Path, targets: dict[str, Any], mode: dict[str, Any]) -> dict[str, Any]:
    project = place / "home" / "project"
    program = Path(targets["program"])
    program.write_text(AGENT.format(at=json.dumps(targets)))
    settings: Any = {
        "sandbox_readable": "~/.config/agent", "sandbox_writable": "~/.cache/agent", "sandbox_env": "LISTED",
        **mode,
    }  # fmt: skip
    call = ActorCall(
        task=Task(id="t", domain="d", prompt="p"), prompt=Prompt(system="s", user="u"),
        temperature=0.0, seed=1,
        workspace=Workspace(place / "work" / "own", left=True), timeout_s=60.0, answer_max_bytes=100_000,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place / "home"))
        patch.setenv("SOME_KEY", "secret")
        patch.setenv("LISTED", "yes")
        actor = open_actor(f"command:'{sys.executable}' agent.py", root=project, settings=settings)
        outcome = asyncio.run(attempt(actor, call))
    assert outcome.failure is None, outcome.failure
    return dict(json.loads(outcome.answer))


AS_YOU = {
    "have capabilities, or mount": may_mount,
    "read the kernel's keys of your login, and leave some": lambda: [add_key("more")] * 3,
}


@pytest.mark.parametrize(("row", "mode"), table(), ids=lambda part: re.sub(r"\W+", "-", part).strip("-"))
def test_a_cell_of_the_table_is_true(
    row: str, mode: str, found: Callable[[str], dict[str, Any]], targets: dict[str, Any]
) -> None:
    cell, here = table()[row, mode], found(mode)
    if cell == "as you":
        wanted = AS_YOU.get(row, lambda: [os.access("/proc/sys/kernel/core_pattern", os.W_OK)])()
    else:
        wanted = [{"yes": True, "no": False}[cell]] * len(here[row])
    assert here[row] == wanted


def test_the_table_has_every_probe_and_every_mode(found: Callable[[str], dict[str, Any]]) -> None:
    rows, modes = ({key[n] for key in table()} for n in (0, 1))
    assert modes == set(MODES)
    assert rows == set(found("no sandbox")) - {"given"}


def test_a_sandbox_passes_on_a_few_variables_and_those_listed(found: Callable[[str], dict[str, Any]]) -> None:
    listed, home, names = found("`bwrap`")["given"]
    assert (listed, home) == (True, "/tmp")
    assert set(names) == {"HOME", "LANG", "LC_CTYPE", "LISTED", "PATH", "PWD", "TMPDIR"} & set(names)
