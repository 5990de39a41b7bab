"""The bubblewrap sandbox of the command actor."""

import errno
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult
from pytest_tfgrpo.sandbox.programs.supervisor import REFUSED

BWRAP = {"sandbox": "bwrap"}


@pytest.fixture
def run_inside(ask: Callable[..., AttemptResult], tmp_path: Path) -> Callable[..., str]:
    """Run Python source as an agent in the sandbox; return its answer."""
    require_tool("bwrap")

    def run(source: str, *, sandbox: str = "bwrap") -> str:
        (tmp_path / "agent.py").write_text(source)
        outcome = ask(f"command:'{sys.executable}' agent.py", settings={"sandbox": sandbox})
        assert outcome.failure is None, outcome.failure
        return outcome.answer

    return run


def test_the_workspace_is_the_only_place_to_write(run_inside: Callable[..., str], tmp_path: Path) -> None:
    source = f"""
import os, pathlib
def can_write(path):
    try:
        pathlib.Path(path).write_text("x")
    except OSError:
        return False
    return True
home = os.path.expanduser("~")
outside = ({str(tmp_path / "data" / "outside.txt")!r}, "/outside.txt", "/run/private.txt", "/usr/outside.txt")
print([can_write(p) for p in ("mine.txt", *outside, "/tmp/private.txt", home + "/private.txt")])
"""
    assert run_inside(source) == "[True, False, False, False, False, True, True]"
    assert (tmp_path / "work" / "mine.txt").read_text() == "x"
    assert not any(
        Path(p).exists() for p in ("/run/private.txt", "/tmp/private.txt", Path("~/private.txt").expanduser())
    )


CONNECT = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=5).close()
    print("reached")
except OSError as error:
    print("refused")
"""


def test_there_is_no_network_not_even_loopback(run_inside: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = CONNECT.format(port=server.getsockname()[1])
        assert run_inside(source, sandbox="none") == "reached"
        assert run_inside(source) == "refused"


def test_the_agent_sees_no_other_process(run_inside: Callable[..., str]) -> None:
    assert (
        run_inside(
            "import os; print(os.getpid() < 10, len([p for p in os.listdir('/proc') if p.isdigit()]) < 5)"
        )
        == "True True"
    )


def test_a_program_in_a_hidden_folder_is_found_and_cannot_be_written(
    ask: Callable[..., AttemptResult],
) -> None:
    require_tool("bwrap")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        agent = Path(name, "agent")
        agent.write_text("#!/bin/sh\n(echo x > $0) 2> /dev/null\necho 3\n")
        agent.chmod(0o755)
        outcome = ask(f"command:{agent}", settings=BWRAP)
        assert outcome.answer == "3"
        assert agent.read_text().startswith("#!")


def test_a_sandboxed_hang_ends_at_the_time_limit(ask: Callable[..., AttemptResult]) -> None:
    require_tool("bwrap")
    outcome = ask("command:sleep 600", settings=BWRAP, timeout_s=0.3)
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"


def test_a_bubblewrap_that_does_not_work_here_does_not_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no permission >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ActorError, match="cannot make a sandbox here: 'no permission'; allow user namespaces"
    ):
        open_actor(f"command:'{sys.executable}'", root=tmp_path, settings=BWRAP)


@pytest.mark.parametrize(
    ("limits", "source", "reason"),
    [
        ("memory=200MB", "print(len(b'x' * 500_000_000))", "MemoryError"),
        ("file_size=1MB", "open('big', 'wb').write(b'x' * 2_000_000)", "File too large"),
    ],
)
def test_an_agent_cannot_use_more_than_its_limits(
    ask: Callable[..., AttemptResult], tmp_path: Path, limits: str, source: str, reason: str
) -> None:
    require_tool("bwrap")
    (tmp_path / "agent.py").write_text(f"import resource\n{source}\nprint(3)\n")
    spec = f"command:'{sys.executable}' agent.py"
    assert ask(spec, settings=BWRAP).failure is None
    failure = ask(spec, settings={**BWRAP, "sandbox_limits": limits}).failure
    assert failure is not None
    assert reason in failure.message


CALLS = f"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
found = {{}}
for number in {list(REFUSED.get(os.uname().machine, ()))}:
    ctypes.set_errno(0)
    pid = os.fork()
    if not pid:  # so that a call that is let through ends no more than this
        os._exit(ctypes.get_errno() if libc.syscall(number, -1, -1, -1, -1, -1) < 0 else 0)
    found[number] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps([status["Seccomp"].strip(), found]))
"""


def test_the_kernel_refuses_the_calls_that_no_program_in_a_sandbox_may_make(
    run_inside: Callable[..., str],
) -> None:
    refused = REFUSED.get(os.uname().machine)
    if refused is None:
        pytest.skip("NOT TESTED: there is no filter of system calls for this machine")
    mode, found = json.loads(run_inside(CALLS))
    assert (mode, found) == ("2", {str(number): errno.EPERM for number in refused})
