"""Programs end with all that they started: at their end, at the time limit, when the run is killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.campaign import Campaign
from support.project import Project
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs import processes
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.command import run_limited

SANDBOXES = ("none", "bwrap")
ESCAPES = {
    "child": "sleep {s} &",
    "session": "setsid sleep {s} &",
    "no hang-up": "nohup sleep {s} > /dev/null 2>&1 &",
    "orphan": "(setsid sleep {s} &) &",
    "bare": "env -i /usr/bin/setsid sh -c 'trap \"\" TERM HUP; sleep {s} & sleep {s}' > /dev/null 2>&1 &",
}
"""Ways in which an agent leaves something running, by name."""


@pytest.fixture
def mark() -> str:
    """Return a number of seconds that no other process sleeps."""
    return str(10**8 + uuid.uuid4().int % 10**8)


def running(mark: str) -> int:
    """Count processes of this machine, in sandboxes too, whose command line has the mark."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += mark.encode() in path.read_bytes().split(b"\0")
        except OSError:
            continue
    return count


def ends(mark: str, seconds: float = 100) -> bool:
    deadline = time.monotonic() + seconds
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running(mark) == 0


def script(folder: Path, mark: str, last: str) -> Path:
    """Write an agent that escapes in every way, waits for that, and then does `last`."""
    lines = [how.format(s=mark) for how in ESCAPES.values()]
    path = folder / "agent"
    path.write_text("\n".join(["#!/bin/sh", *lines, "sleep 0.2", last, ""]))
    path.chmod(0o755)
    return path


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., AttemptResult]:
    """Ask the agent of a folder once."""

    def ask(sandbox: str, timeout_s: float = 100.0) -> AttemptResult:
        if sandbox == "bwrap":
            require_tool("bwrap")
        settings: Any = {"sandbox": sandbox}
        actor = open_actor("command:./agent", root=tmp_path, settings=settings)
        call = ActorCall(
            task=Task(id="t", domain="d", prompt="p"),
            prompt=Prompt(system="s", user="u"),
            temperature=0.0,
            seed=1,
            workspace=Workspace(tmp_path / "work"),
            timeout_s=timeout_s,
            answer_max_bytes=1000,
        )
        return asyncio.run(attempt(actor, call))

    return ask


def supervisors() -> list[int]:
    """Return the processes that start programs for this one."""
    own = ["pgrep", "-P", str(os.getpid()), "-f", "supervisor.py"]
    return [int(pid) for pid in subprocess.run(own, capture_output=True, text=True).stdout.split()]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_nothing_that_an_agent_started_outlives_its_answer(
    ask: Callable[..., AttemptResult], tmp_path: Path, mark: str, sandbox: str
) -> None:
    script(tmp_path, mark, "echo 3")
    assert ask(sandbox).answer == "3"
    assert running(mark) == 0


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_nothing_that_an_agent_started_outlives_its_time_limit(
    ask: Callable[..., AttemptResult], tmp_path: Path, mark: str, sandbox: str
) -> None:
    script(tmp_path, mark, f"touch up; trap '' TERM; sleep {mark}")
    failure = ask(sandbox, timeout_s=3.0).failure
    assert failure is not None
    assert failure.code == "timeout"
    assert (tmp_path / "work" / "up").exists()
    assert running(mark) == 0


def test_a_program_ignores_no_signal_that_python_ignores(tmp_path: Path) -> None:
    ending = run_limited(["grep", "SigIgn", "/proc/self/status"], tmp_path, 60.0)
    ignored = int(ending.tail.split()[-1], 16)
    assert not any(ignored >> (number - 1) & 1 for number in (signal.SIGPIPE, signal.SIGXFSZ))


def test_nothing_that_a_checked_program_started_outlives_it(tmp_path: Path, mark: str) -> None:
    agent = str(script(tmp_path, mark, "echo done"))
    assert run_limited([agent], tmp_path, 100.0) == (0, "done\n")
    assert running(mark) == 0
    script(tmp_path, mark, f"sleep {mark}")
    assert run_limited([agent], tmp_path, 1.0).code is None
    assert running(mark) == 0


def test_agents_that_fork_again_and_again_end(
    ask: Callable[..., AttemptResult], tmp_path: Path, mark: str
) -> None:
    (tmp_path / "agent").write_text(
        f"#!{sys.executable}\n"
        "import os, time\n"
        "stop = time.monotonic() + 10\n"
        "for _ in range(8):\n"
        "    if not os.fork():\n"
        "        while time.monotonic() < stop:\n"
        "            if os.fork():\n"
        "                os._exit(0)\n"
        "            os.setsid()\n"
        f"        os.execv('/bin/sleep', ['sleep', '{mark}'])\n"
        "time.sleep(600)\n"
    )
    (tmp_path / "agent").chmod(0o755)
    assert ask("none", timeout_s=1.0).failure is not None
    time.sleep(0.1)
    name = str(tmp_path / "agent")
    assert running(name) == running(mark) == 0


def test_a_killed_process_that_starts_programs_is_replaced(
    ask: Callable[..., AttemptResult], tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\necho 3\n")
    (tmp_path / "agent").chmod(0o755)
    assert ask("none").answer == "3"
    servers = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "supervisor.py"], capture_output=True, text=True
    )
    for pid in servers.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    time.sleep(0.1)
    assert ask("none").answer == "3"


def test_an_agent_that_kills_what_watches_it_dies_too(
    ask: Callable[..., AttemptResult], tmp_path: Path, mark: str
) -> None:
    script(tmp_path, mark, f"kill -9 $PPID; sleep {mark}")
    failure = ask("none").failure
    assert failure is not None
    assert "the process that watched it was killed" in failure.message
    assert ends(mark)


def test_a_program_inherits_no_descriptor_but_its_own(
    ask: Callable[..., AttemptResult], tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\nexec ls /proc/self/fd\n")
    (tmp_path / "agent").chmod(0o755)
    outcome = ask("none")
    assert outcome.failure is None
    assert outcome.answer.split() == ["0", "1", "2", "3"]  # 3 is the folder


def test_closing_leaves_no_process_and_the_next_program_starts_another(
    ask: Callable[..., AttemptResult], tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\necho 3\n")
    (tmp_path / "agent").chmod(0o755)
    assert ask("none").answer == "3"
    processes.close_fork_server()
    left = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "supervisor.py"], capture_output=True, text=True
    )
    assert left.stdout == ""
    assert ask("none").answer == "3"


@pytest.mark.faults
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_after_kill_9_of_pytest_no_agent_outlives_it(
    project: Project, mark: str, sandbox: str, campaign: Campaign
) -> None:
    if sandbox == "bwrap":
        require_tool("bwrap")
    script(project.root, mark, f"sleep {mark}")
    project.ini(actor="command:./agent", sandbox=sandbox, concurrency=4).scenarios()
    chance = campaign.random("kill", sandbox)
    for _ in range(campaign.count(2, 40)):
        process = project.start()
        deadline = time.monotonic() + 100
        while not running(mark) and time.monotonic() < deadline:
            time.sleep(0.005)
        assert running(mark)
        time.sleep(chance.uniform(0, 0.5))
        process.kill()
        process.communicate(timeout=100)  # nothing holds its output open
        assert ends(mark)


@pytest.mark.faults
def test_after_kill_9_of_pytest_no_checked_program_outlives_it(project: Project, mark: str) -> None:
    agent = script(project.root, mark, f"sleep {mark}")
    project.scenarios(checks=[{"kind": "command", "run": str(agent), "timeout_s": 600}])
    process = project.start()
    while not running(mark) and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=100)
    assert ends(mark)


KEYRING = """
import ctypes, os
number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
print(ctypes.CDLL(None).syscall(number, 0, ctypes.c_long(-3), 0))
"""
"""Prints the number of the session's keyring."""


def test_a_program_without_a_sandbox_has_the_keys_of_your_login_after_one_in_a_sandbox(
    tmp_path: Path,
) -> None:
    stand_in = tmp_path / "bwrap"
    stand_in.write_text("#!/bin/sh\nexit 0\n")
    stand_in.chmod(0o755)

    def out_of(*argv: str) -> str:
        with (tmp_path / "out").open("w+") as file:
            launch = processes.Start(
                argv=argv, folder=tmp_path, environment={"PATH": "/usr/bin:/bin"}, files=(0, file.fileno(), 2)
            )
            channel = processes.start(launch)
            while (record := channel.read()) is not None and record[0] != "G":
                if record[0] == "X":
                    channel.end()
            processes.finish(channel, gone=True)
            file.seek(0)
            return file.read()

    before = out_of(sys.executable, "-c", KEYRING)
    for _ in range(processes.IDLE + 1):
        out_of(str(stand_in))
        assert out_of(sys.executable, "-c", KEYRING) == before
