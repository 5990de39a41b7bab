"""Agents that end the process they share with pytest: it never looks like a success."""

import subprocess
import sys

import pytest
from support.plugin.exits import AGENT
from support.project import Project


@pytest.fixture
def project(project: Project) -> Project:
    return project.agent(AGENT).scenarios(train=2, sweep=3)


@pytest.mark.parametrize(
    ("name", "call", "capture"),
    [
        ("quits", "os._exit(0)", "fd"),
        ("quits", "os._exit(0)", "sys"),
        ("quits", "os._exit(0)", "no"),
        ("quits_by_name", "os._exit(0)", "fd"),
        ("quits_in_a_thread", "os._exit(5)", "fd"),
        ("becomes_another_program", "os.execv(", "fd"),
    ],
)
def test_an_agent_that_ends_the_process_makes_pytest_fail_with_a_line_that_says_so(
    project: Project, name: str, call: str, capture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project.ini(actor=f"python:agent2:{name}", group_size=2)
    process = project.start(f"--capture={capture}")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 3
    (said,) = [line for line in output.splitlines() if "before the run had ended" in line]
    where = "threading.py" if "thread" in name else "agent2.py:"
    assert where in said
    assert f"called {call}" in said
    assert said.endswith("is unfinished: let the agent return or raise, and run again")
    assert not project.events("finish")
    assert project.cli("runs") == 0
    assert " killed " in capsys.readouterr().out
    process = project.start("--tfgrpo-resume")  # this agent does it once
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert project.manifest()["status"] == "complete"


def test_an_agent_that_ends_an_xdist_worker_fails_its_item(project: Project) -> None:
    project.plugins("xdist").ini(actor="python:agent2:quits", group_size=2)
    process = project.start("-n1")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "before the run had ended; leaving with exit code 3" in output
    assert "crashed while running" in output
    assert project.manifest()["status"] == "complete"  # the next worker went on with it


def test_children_end_as_they_like(project: Project) -> None:
    process = project.ini(actor="python:agent2:forks", group_size=2).start()
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert project.manifest()["status"] == "complete"


API = """
import os, sys
from pytest_tfgrpo import run

def show():
    print(os._exit.__module__, flush=True)

show()
try:
    run(actor=sys.argv[1])
finally:
    show()
"""


@pytest.mark.parametrize(("name", "code"), [("quits", 3), ("forks", 0)])
def test_a_run_from_python_is_guarded_as_long_as_it_lasts(project: Project, name: str, code: int) -> None:
    project.ini().write("api.py", API)
    command = [sys.executable, "api.py", f"python:agent2:{name}"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stderr
    assert done.stdout.split() == ["posix"] * (1 if code else 2)
    assert ("called os._exit(0) before the run had ended" in done.stderr) == bool(code)
