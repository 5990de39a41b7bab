"""Progress while a run works."""

import os
import pty
import re
import subprocess
import sys

import pytest
from support.project import Project
from support.tools import run_pytest


@pytest.fixture
def slow(project: Project) -> Project:
    agent = """
async def solve(context):
    import asyncio
    await asyncio.sleep(0.25)
    return "3"
"""
    return project.agent(agent).ini(actor="python:agent2:solve", concurrency=2).scenarios()


def test_each_phase_ends_with_a_plain_line_but_not_with_q(project: Project) -> None:
    project.scenarios()
    project.learn().stdout.fnmatch_lines(
        [
            "tfgrpo epoch2: 4 rollouts scored, gt mean 1.000*",
            "tfgrpo baseline: 4 rollouts scored, gt mean 1.000, 2 scenarios with the answers of *",
        ]
    )
    project.learn("-q").stdout.no_fnmatch_line("tfgrpo baseline: *")


@pytest.mark.parametrize("plugin", ["terminal", "capture"])
def test_a_run_needs_neither_pytests_terminal_nor_its_capture(project: Project, plugin: str) -> None:
    project.scenarios()
    done = run_pytest(project.root, "--tfgrpo", "-p", f"no:{plugin}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.manifest()["status"] == "complete"


def test_long_epochs_print_a_line_now_and_then(slow: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.plugin.progress.PLAIN_EVERY_S", 0.1)
    slow.learn().stdout.re_match_lines([r"tfgrpo epoch1: 2/4 rollouts, \d+ s"])


def test_on_a_terminal_the_line_is_drawn_in_place(slow: Project) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--tfgrpo", "--tfgrpo-eval-rollouts=2", "-p", "no:cacheprovider"],
        cwd=slow.root,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=30) == 0
    text = shown.decode()
    assert re.search(r"\n\r\x1b\[2Ktfgrpo epoch3-eval: 2/4 rollouts, \d+ s", text.replace("\r\n", "\n"))
    # The line is wiped and the cursor put back to where pytest was writing.
    assert "\x1b[2K\x1b[1A\x1b[20C." in text
    assert text.count("\x1b[1A") == text.count("\x1b[2K\x1b[1A")
