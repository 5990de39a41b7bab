"""The check that runs a program: exit code, limits, and nothing left behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import CheckError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_exit_code_decides(judge):
    assert judge("command", run=python("")).passed
    assert judge("command", run=python("raise SystemExit(3)"), exit_code=3).passed
    reason = judge("command", run=python("print('oh dear'); raise SystemExit(3)")).reason
    assert "ended with 3, expected 0; output ends 'oh dear\\n'" in reason


def test_it_runs_in_the_workspace(judge, workspace):
    (workspace / "made").write_text("x")
    assert judge("command", run="test -f made").passed
    assert not judge("command", run="test -f other").passed


def test_a_text_is_split_into_arguments_and_no_shell_reads_it(judge, workspace):
    assert judge("command", run="""sh -c 'test "$0" = "a b"' 'a b'""").passed
    judge("command", run="touch $HOME;ls > out")
    assert sorted(path.name for path in workspace.iterdir()) == ["$HOME;ls", ">", "out"]


def test_the_environment_is_scrubbed(judge, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    code = "import os, sys; sys.exit(not set(os.environ) <= {'PATH', 'HOME', 'LANG', 'LC_CTYPE'})"
    assert judge("command", run=python(code)).passed


def test_python_is_the_interpreter_that_runs_the_suite(judge):
    assert judge(
        "command", run=["python", "-c", f"import sys; sys.exit(sys.prefix != {sys.prefix!r})"]
    ).passed


def test_a_relative_folder_of_the_search_path_does_not_lead_into_the_workspace(judge, workspace, monkeypatch):
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    planted = workspace / "planted-program"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    with pytest.raises(CheckError, match="install the program"):
        judge("command", run="planted-program")


def test_a_missing_program_is_a_broken_check_unless_it_is_the_agents_work(judge, workspace):
    for run in ("no-such-program-anywhere", "/no/such/program"):
        with pytest.raises(
            CheckError, match=f"'{run}' cannot be started: No such file or directory; install"
        ):
            judge("command", run=run)
    assert "'./solve' cannot be started: No such file" in judge("command", run="./solve").reason
    (workspace / "solve").write_text("#!/bin/sh\n")
    assert "cannot be started: Permission denied" in judge("command", run="./solve").reason
    (workspace / "solve").chmod(0o755)
    assert judge("command", run="./solve").passed


def test_input_is_empty(judge):
    assert judge("command", run=python("import sys; sys.exit(sys.stdin.read() != '')")).passed


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_gone(folder: Path, count: int) -> None:
    """All processes that left their number in `folder` are dead, or die as soon as the kernel gets to it."""
    pids = [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
    assert len(pids) >= count
    deadline = time.monotonic() + 100
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(alive, pids))


BREED = """
import os, pathlib, time
for _ in range(4):
    os.fork()
pathlib.Path(str(os.getpid())).touch()
"""


def test_a_program_that_multiplies_and_hangs_is_killed_as_a_whole(judge, workspace):
    result = judge("command", run=python(BREED + "time.sleep(600)"), timeout_s=5)
    assert "took more than 5 s" in result.reason
    assert_gone(workspace, 16)


def test_children_that_outlive_their_program_are_killed(judge, workspace):
    code = """
import os, pathlib, time
if os.fork() == 0:
    pathlib.Path(str(os.getpid())).touch()
    time.sleep(600)
while not any(p.name.isdigit() for p in pathlib.Path().iterdir()):
    time.sleep(0.01)
"""
    assert judge("command", run=python(code)).passed
    assert_gone(workspace, 1)


def test_a_program_that_ignores_signals_is_killed(judge):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    assert "took more than" in judge("command", run=python(code), timeout_s=0.3).reason


def test_a_program_that_closes_its_output_and_hangs_is_killed(judge):
    code = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    assert "took more than" in judge("command", run=python(code), timeout_s=0.5).reason


def test_endless_output_is_dropped_and_its_end_shown(judge):
    assert "took more than" in judge("command", run="yes", timeout_s=0.3).reason
    reason = judge("command", run=python("print('x' * 5_000_000 + 'end'); raise SystemExit(1)")).reason
    assert reason.endswith("xend\\n'")
    assert len(reason) < 1000


def test_a_signal_is_no_success(judge):
    reason = judge("command", run=python("import os; os.kill(os.getpid(), 9)")).reason
    assert "ended with -9, expected 0" in reason
